// The Gram matrix of each block of BLOCK rows: ⟨row i, row j⟩ for j ≥ i, constant included, at place_in_gram(i, j).
//
// A thread block takes 128 rows, which are 128/BLOCK blocks, and keeps STEP features of them at a time in shared memory.
// Each thread sums a tile of TILE × TILE products; tiles below the diagonal are left out. The order of each sum is that of
// the features.

#define ROWS 128
#define STEP 16
#define PADDED (ROWS + 4)
#define TILES (BLOCK / TILE)
#define OF_A_BLOCK (TILES * (TILES + 1) / 2)
#define ALL_TILES (OF_A_BLOCK * (ROWS / BLOCK))

extern "C" __global__ void __launch_bounds__(THREADS) gram(
    const REAL *packed, REAL *grams, int64 groups, int slices, int width
) {
    __shared__ REAL part[2][STEP][PADDED];
    int tile = threadIdx.x < ALL_TILES ? threadIdx.x : 0;
    int number = tile / OF_A_BLOCK, rest = tile % OF_A_BLOCK, row = 0;
    while (rest >= TILES - row) rest -= TILES - row, row++;
    int left = number * BLOCK + row * TILE, right = number * BLOCK + (row + rest) * TILE;
    const int loads = ROWS * STEP / UNITS;  // vectors of a part
    const int of_a_thread = (loads + THREADS - 1) / THREADS;
    int vectors = width / UNITS, of_a_row = slices * vectors, parts = (of_a_row * UNITS + STEP - 1) / STEP;
    for (int64 group = blockIdx.x; group < groups; group += gridDim.x) {
        const Vector *from = (const Vector *)packed + group * ROWS * of_a_row;
        REAL sums[TILE][TILE];
        Vector next[of_a_thread];
#pragma unroll
        for (int i = 0; i < TILE; i++)
#pragma unroll
            for (int j = 0; j < TILE; j++) sums[i][j] = 0;
        for (int p = 0; p <= parts; p++) {
#pragma unroll
            for (int e = 0; e < of_a_thread; e++) {  // ask for the next part
                int load = threadIdx.x + e * THREADS, r = load / (STEP / UNITS);
                int vector = p * (STEP / UNITS) + load % (STEP / UNITS);
                Vector value;
#pragma unroll
                for (int u = 0; u < UNITS; u++) value.at[u] = 0;
                if (p < parts && load < loads && vector < of_a_row) {
                    int slice = vector / vectors;
                    value = from[((int64)(r / BLOCK) * slices + slice) * BLOCK * vectors + (r % BLOCK) * vectors +
                                 vector % vectors];
                }
                next[e] = value;
            }
            if (p > 0) {
                const REAL(*now)[PADDED] = part[(p - 1) & 1];
#pragma unroll
                for (int k = 0; k < STEP; k++) {
                    REAL a[TILE], b[TILE];
#pragma unroll
                    for (int i = 0; i < TILE; i += UNITS) {
                        *(Vector *)&a[i] = *(const Vector *)&now[k][left + i];
                        *(Vector *)&b[i] = *(const Vector *)&now[k][right + i];
                    }
#pragma unroll
                    for (int i = 0; i < TILE; i++)
#pragma unroll
                        for (int j = 0; j < TILE; j++) sums[i][j] += a[i] * b[j];
                }
            }
            if (p < parts) {
                REAL(*then)[PADDED] = part[p & 1];
#pragma unroll
                for (int e = 0; e < of_a_thread; e++) {
                    int load = threadIdx.x + e * THREADS;
                    if (load < loads)
#pragma unroll
                        for (int u = 0; u < UNITS; u++)
                            then[load % (STEP / UNITS) * UNITS + u][load / (STEP / UNITS)] = next[e].at[u];
                }
            }
            __syncthreads();
        }
        if (threadIdx.x < ALL_TILES) {
            REAL *to = grams + (group * (ROWS / BLOCK) + number) * GRAM_SIZE;
            int first = left - number * BLOCK, second = right - number * BLOCK;
#pragma unroll
            for (int i = 0; i < TILE; i++)
#pragma unroll
                for (int j = 0; j < TILE; j += UNITS)
                    *(Vector *)&to[place_in_gram(first + i, second + j)] = *(Vector *)&sums[i][j];
        }
    }
}
