// SPDX-License-Identifier: Apache-2.0
// PageRank and random walks in the order of a disk-based graph engine: parallel sliding windows (A. Kyrola, G. Blelloch and
// C. Guestrin, "GraphChi: Large-Scale Graph Computation on Just a PC", OSDI 2012) and walks in buckets (A. Kyrola, "DrunkardMob:
// Billions of Random Walks on Just a PC", RecSys 2013). No package has such an engine. What the engine keeps in files is memory
// here, larger than the DRAM of the simulations, whose swap space does what the engine's reads and writes did.
//   graph make GRAPH | pagerank GRAPH | randomwalk GRAPH
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCALE = 18, VERTICES = 1 << SCALE, EDGES = 4000000, INTERVALS = 16, WIDTH = VERTICES / INTERVALS, ROUNDS = 100 };

struct edge {
	uint32_t from, to;
	float value;
};

// Shard i has the edges to interval i, sorted by their sources: shards[i] to shards[i + 1], and of these from interval j:
// windows[i][j] to windows[i][j + 1].
struct graph {
	uint32_t degree[VERTICES];
	uint32_t windows[INTERVALS][INTERVALS + 1];
	struct edge edges[EDGES];
};

static uint64_t state = 1;

// Vigna's splitmix64.
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int by_shard_and_source(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	uint32_t i = x->to / WIDTH, j = y->to / WIDTH;

	if (i != j)
		return i < j ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

// R-MAT (Chakrabarti, Zhan and Faloutsos, SDM 2004) with Graph 500's odds, vertices renamed at random.
static void make(struct graph *g)
{
	static uint32_t name[VERTICES];

	for (uint32_t i = 0; i < VERTICES; i++) {
		uint32_t j = draw() % (i + 1);

		name[i] = name[j];
		name[j] = i;
	}
	for (long n = 0; n < EDGES; n++) {
		uint32_t from = 0, to = 0;

		for (int bit = 0; bit < SCALE; bit++) {
			uint32_t part = draw() % 100;

			from = from * 2 + (part >= 76);
			to = to * 2 + ((part >= 57 && part < 76) || part >= 95);
		}
		g->edges[n] = (struct edge){ name[from], name[to], 0 };
		g->degree[name[from]]++;
	}
	qsort(g->edges, EDGES, sizeof(struct edge), by_shard_and_source);
	for (uint32_t i = 0, at = 0; i < INTERVALS; i++)
		for (uint32_t j = 0; j <= INTERVALS; j++) {
			g->windows[i][j] = at;
			while (j < INTERVALS && at < EDGES && g->edges[at].to / WIDTH == i && g->edges[at].from / WIDTH == j)
				at++;
		}
}

// One interval after the other: what came in on its shard, then what goes out through a window of each shard.
static double pagerank(struct graph *g)
{
	float *rank = calloc(VERTICES, sizeof(*rank));

	for (long n = 0; n < EDGES; n++)
		g->edges[n].value = 1.0f / VERTICES / g->degree[g->edges[n].from];
	for (int round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < INTERVALS; i++) {
			float *of = rank + i * WIDTH;

			memset(of, 0, WIDTH * sizeof(*of));
			for (uint32_t n = g->windows[i][0]; n < g->windows[i][INTERVALS]; n++)
				of[g->edges[n].to % WIDTH] += g->edges[n].value;
			for (uint32_t v = 0; v < WIDTH; v++)
				of[v] = 0.15f / VERTICES + 0.85f * of[v];
			for (uint32_t shard = 0; shard < INTERVALS; shard++)
				for (uint32_t n = g->windows[shard][i]; n < g->windows[shard][i + 1]; n++) {
					uint32_t from = g->edges[n].from;

					g->edges[n].value = rank[from] / g->degree[from];
				}
		}
	return rank[1];
}

// Walks wait in the bucket of the interval that they are in. An interval's out-edges are gathered, then its walks go a step.
static double randomwalk(struct graph *g)
{
	enum { WALKS = 1 << 20 };
	static uint32_t first[WIDTH + 1], *out, count[2][INTERVALS];
	uint32_t *buckets[2][INTERVALS];
	uint32_t *visits = calloc(VERTICES, sizeof(*visits));

	out = malloc(EDGES * sizeof(*out));
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < INTERVALS; i++)
			buckets[side][i] = malloc(WALKS * sizeof(uint32_t));
	for (uint32_t n = 0; n < WALKS; n++) {
		uint32_t at = draw() % VERTICES;

		buckets[0][at / WIDTH][count[0][at / WIDTH]++] = at;
	}
	for (int round = 0; round < ROUNDS; round++) {
		int now = round % 2, then = 1 - now;

		memset(count[then], 0, sizeof(count[then]));
		for (uint32_t i = 0; i < INTERVALS; i++) {
			uint32_t *degree = g->degree + i * WIDTH;

			first[0] = 0;
			for (uint32_t v = 0; v < WIDTH; v++)
				first[v + 1] = first[v] + degree[v];
			for (uint32_t shard = 0; shard < INTERVALS; shard++)
				for (uint32_t n = g->windows[shard][i]; n < g->windows[shard][i + 1]; n++)
					out[first[g->edges[n].from % WIDTH]++] = g->edges[n].to;
			for (uint32_t n = 0; n < count[now][i]; n++) {
				uint32_t at = buckets[now][i][n], of = degree[at % WIDTH];
				// A walk that cannot go on, and one in seven, begins anew.
				uint32_t to = of && draw() % 7 ? out[first[at % WIDTH] - 1 - draw() % of] : draw() % VERTICES;

				visits[to]++;
				buckets[then][to / WIDTH][count[then][to / WIDTH]++] = to;
			}
		}
	}
	return visits[1];
}

int main(int argc, char **argv)
{
	struct graph *g = calloc(1, sizeof(*g));
	FILE *file;

	if (argc != 3 || !g) {
		fprintf(stderr, "usage: graph make|pagerank|randomwalk GRAPH\n");
		return 2;
	}
	if (!strcmp(argv[1], "make")) {
		make(g);
		file = fopen(argv[2], "wb");
		if (!file || fwrite(g, sizeof(*g), 1, file) != 1 || fclose(file))
			return perror(argv[2]), 1;
		return 0;
	}
	file = fopen(argv[2], "rb");
	if (!file)
		return perror(argv[2]), 1;
	setbuf(file, NULL); // One read, straight to its place.
	if (fread(g, sizeof(*g), 1, file) != 1)
		return perror(argv[2]), 1;
	printf("%g\n", !strcmp(argv[1], "pagerank") ? pagerank(g) : randomwalk(g));
	return 0;
}
