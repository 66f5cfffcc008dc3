// What both examples do: fill two matrices, run a kernel over blocks of 5 x 5 threads, compare every cell.
#include <stdio.h>
#include <stdlib.h>

enum { N = 1003 }; // no multiple of a block, so that threads at the edge have nothing to do

#define CHECK(call) \
	do { \
		cudaError_t e = (call); \
		if (e != cudaSuccess) { \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
			exit(1); \
		} \
	} while (0)

typedef void (*kernel)(const int *, const int *, int *);

static int run(const char *name, kernel k, int (*expected)(const int *, const int *, int, int)) {
	size_t bytes = sizeof(int) * N * N;
	int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
	for (int i = 0; i < N * N; i++) {
		a[i] = i % 17;
		b[i] = i % 13 - 6;
	}
	int *da, *db, *dc;
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	dim3 threadPerBlock(5, 5), blocks((N + 4) / 5, (N + 4) / 5);
	k<<<blocks, threadPerBlock>>>(da, db, dc);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	long wrong = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			wrong += c[i * N + j] != expected(a, b, i, j);
	printf("%s: %d x %d, %ld cells differ from the processor's\n", name, N, N, wrong);
	return wrong != 0;
}
