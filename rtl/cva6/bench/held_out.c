// SPDX-License-Identifier: Apache-2.0
// Programs that test the profile `cva6`: none of its constants was measured with them.
#include "bench.h"

enum { ITEMS = 4096 };
static uint32_t items[ITEMS], other[ITEMS];
static uint8_t bytes[64 << 10];
static struct node { struct node *left, *right; uint64_t key; } nodes[ITEMS];

static void fill(void) {
    uint64_t random = 7;
    for (int i = 0; i < ITEMS; i++) items[i] = next_random(&random);
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = next_random(&random);
}

static void sort(uint32_t *a, int n) {
    while (n > 8) {
        uint32_t pivot = a[n / 2];
        int i = 0, j = n - 1;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) {
                uint32_t kept = a[i];
                a[i++] = a[j];
                a[j--] = kept;
            }
        }
        sort(a, j + 1);
        a += i;
        n -= i;
    }
    for (int i = 1; i < n; i++) {
        uint32_t x = a[i];
        int j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static uint32_t crc(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
    }
    return ~c;
}

static struct node *tree(void) {
    struct node *root = 0;
    uint64_t random = 3;
    for (int i = 0; i < ITEMS; i++) {
        struct node **at = &root;
        nodes[i] = (struct node){0, 0, next_random(&random)};
        while (*at) at = nodes[i].key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = &nodes[i];
    }
    return root;
}

static uint64_t matrix(void) {
    static double a[32][32], b[32][32], c[32][32];
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) a[i][j] = i + j, b[i][j] = i - j;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) {
            double sum = 0;
            for (int k = 0; k < 32; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    return (uint64_t)(int64_t)c[5][7];
}

static uint64_t text_words(void) {
    uint64_t words = 0, inside = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        switch (bytes[i] & 31) {
        case 0: case 1: case 2: case 3:
            inside = 0;
            break;
        default:
            words += !inside;
            inside = 1;
        }
    }
    return words;
}

int main(void) {
    volatile uint64_t sink;
    fill();
    MEASURE("sort", ITEMS, (fill(), sort(items, ITEMS)));
    MEASURE("crc", 16384, sink = crc(bytes, 16384));
    MEASURE("tree", ITEMS, sink = (uint64_t)tree());
    MEASURE("matrix", 32 * 32 * 32, sink = matrix());
    MEASURE("words", sizeof(bytes), sink = text_words());
    MEASURE("copy", ITEMS, for (int i = 0; i < ITEMS; i++) ((volatile uint32_t *)other)[i] = items[i]);
    (void)sink;
    puts_("end\n");
    return 0;
}
