// Multiplies two matrices on the card and compares with the processor. Each thread has one cell of the product.
#include "matrix.h"

__global__ void matrix_multiply(const int *a, const int *b, int *c) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int j = blockIdx.y * blockDim.y + threadIdx.y;
	if (i >= N || j >= N)
		return;
	int value = 0;
	for (int k = 0; k < N; k++)
		value += a[i * N + k] * b[k * N + j];
	c[i * N + j] = value;
}

static int expected(const int *a, const int *b, int i, int j) {
	int value = 0;
	for (int k = 0; k < N; k++)
		value += a[i * N + k] * b[k * N + j];
	return value;
}

int main(void) { return run("matrix_multiply", matrix_multiply, expected); }
