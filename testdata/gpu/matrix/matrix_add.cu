// Adds two matrices on the card and compares with the processor. Each thread has one cell.
#include "matrix.h"

__global__ void matrix_add(const int *a, const int *b, int *c) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int j = blockIdx.y * blockDim.y + threadIdx.y;
	if (i < N && j < N)
		c[i * N + j] = a[i * N + j] + b[i * N + j];
}

static int expected(const int *a, const int *b, int i, int j) { return a[i * N + j] + b[i * N + j]; }

int main(void) { return run("matrix_add", matrix_add, expected); }
