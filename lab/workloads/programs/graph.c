// SPDX-License-Identifier: Apache-2.0
// PageRank and a random walk by igraph on a scale-free graph. In C, because the graph must be there soon after the start:
// igraph's Python needs billions of accesses to take one over.
//   graph make GRAPH | pagerank GRAPH | randomwalk GRAPH
#include <igraph/igraph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERTICES = 1500000, EDGES_EACH = 3, STEPS = 20000000 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

// The vectors that make up a graph, indexes over the edges included.
static void each_vector(igraph_t *graph, FILE *file, size_t (*move)(igraph_vector_int_t *, FILE *), const char *path)
{
	igraph_vector_int_t *vectors[] = { &graph->from, &graph->to, &graph->oi, &graph->ii, &graph->os, &graph->is };

	if (!file)
		die(path);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
		if (move(vectors[i], file) != (size_t)igraph_vector_int_size(vectors[i]))
			die(path);
	if (fclose(file))
		die(path);
}

static size_t put(igraph_vector_int_t *vector, FILE *file)
{
	return fwrite(VECTOR(*vector), sizeof(igraph_integer_t), igraph_vector_int_size(vector), file);
}

static size_t get(igraph_vector_int_t *vector, FILE *file)
{
	return fread(VECTOR(*vector), sizeof(igraph_integer_t), igraph_vector_int_size(vector), file);
}

// Barabasi and Albert's graph, its making being no part of the workloads.
static void make(igraph_t *graph, const char *path)
{
	igraph_barabasi_game(graph, VERTICES, 1, EDGES_EACH, NULL, 1, 1, 0, IGRAPH_BARABASI_BAG, NULL);
	each_vector(graph, fopen(path, "wb"), put, path);
}

// igraph's own functions would sort the edges again.
static void load(igraph_t *graph, const char *path)
{
	FILE *file = fopen(path, "rb");
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		die(path);
	rewind(file);
	setbuf(file, NULL); // big reads, straight to their places
	igraph_empty(graph, VERTICES, 0);
	igraph_integer_t edges = (size / (long)sizeof(igraph_integer_t) - 2 * (VERTICES + 1)) / 4;
	igraph_vector_int_resize(&graph->from, edges);
	igraph_vector_int_resize(&graph->to, edges);
	igraph_vector_int_resize(&graph->oi, edges);
	igraph_vector_int_resize(&graph->ii, edges);
	each_vector(graph, file, get, path);
}

int main(int argc, char **argv)
{
	igraph_t graph;

	if (argc != 3) {
		fprintf(stderr, "usage: graph make|pagerank|randomwalk GRAPH\n");
		return 2;
	}
	igraph_rng_seed(igraph_rng_default(), 1);
	if (!strcmp(argv[1], "make")) {
		make(&graph, argv[2]);
		return 0;
	}
	load(&graph, argv[2]);
	if (!strcmp(argv[1], "pagerank")) {
		igraph_vector_t rank;

		igraph_vector_init(&rank, 0);
		igraph_pagerank(&graph, IGRAPH_PAGERANK_ALGO_PRPACK, &rank, NULL, igraph_vss_all(), 0, 0.85, NULL, NULL);
		printf("%g\n", igraph_vector_max(&rank));
	} else {
		igraph_vector_int_t walk;

		igraph_vector_int_init(&walk, 0);
		igraph_random_walk(&graph, NULL, &walk, NULL, 0, IGRAPH_ALL, STEPS, IGRAPH_RANDOM_WALK_STUCK_RETURN);
		printf("%lld\n", (long long)igraph_vector_int_max(&walk));
	}
	return 0;
}
