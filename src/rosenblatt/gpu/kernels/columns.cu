// Two classes, and each class against the rest: weight vectors that are learned independently, from rows that come block
// by block.
//
// COLUMNS weight vectors belong to a cluster of CLUSTER thread blocks, each of which holds a slice of WIDTH features of
// them. In each thread block MULTIPLIERS threads multiply and move, and one more warp for each weight vector decides. A
// block of BLOCK rows is learned from in three steps:
//
//   multiply  each thread block multiplies its slice of the rows with its slices of the weights, and sends the sums to
//             all others;
//   decide    a warp adds them up, always in the same order, and goes through the scores in the order of the rows: at a
//             move τ of row i it adds τ·gram[i][j] to the score of each later row j. All thread blocks decide the same
//             from the same numbers, so moves are not sent. Meanwhile the multipliers load their part of the next rows
//             into registers;
//   move      each thread block adds τ times the rows that moved to its slices of the weights; the warps that decide add
//             clock·τ times these rows to the drift, from which the average is computed.
//
// Rows, Gram matrices and labels of blocks to come are copied meanwhile.

#define THREADS (MULTIPLIERS + 32 * COLUMNS)
#define SHARES (MULTIPLIERS / BLOCK)  // threads that share a row
#define VECTORS (WIDTH / UNITS)
#define OF_A_THREAD ((VECTORS + SHARES - 1) / SHARES)
#define AT_ONCE (BLOCK < 32 ? BLOCK : 32)
#define STAGES 3  // of rows; Gram matrices have two

// Whether it is neither 0 nor −0, by its bits: comparing doubles takes longer.
__device__ __forceinline__ bool is_step(double tau) { return (__double_as_longlong(tau) << 1) != 0; }

struct Move {
    double tau;  // with the sign of the label
    int row;
    int pad;
};

__device__ __forceinline__ void barrier_of_multipliers() { asm volatile("bar.sync 1, %0;" ::"n"(MULTIPLIERS) : "memory"); }

#if CLUSTER > 1
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)

__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes a vector to the same place in the shared memory of another thread block of the cluster, and counts its bytes at
// the Arrival there.
__device__ __forceinline__ void send(const void *to, int rank, Vector value, Arrival *arrival) {
    unsigned there, their_arrival;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(to)), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(their_arrival) : "r"(shared_address(arrival)), "r"(rank));
    const uint4 bits = *(uint4 *)&value;
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
                 "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w), "r"(their_arrival)
                 : "memory");
}
#else
#define OF_A_CLUSTER
__device__ __forceinline__ void cluster_barrier() {}
#endif

extern "C" __global__ void OF_A_CLUSTER __launch_bounds__(THREADS, 1) learn_columns(
    const REAL *packed, const REAL *grams, const Example *examples, int64 rows, int64 position, int64 clock, int columns,
    const double *rule, REAL *w, double *drift, int64 *tallies, REAL *visits, Counts *counts
) {
    extern __shared__ __align__(16) unsigned char memory[];
    REAL *stored_rows = (REAL *)memory;  // [STAGES][BLOCK][WIDTH]
    REAL *stored_grams = stored_rows + STAGES * BLOCK * WIDTH;  // [2][GRAM_SIZE]
    Example *stored_examples = (Example *)(stored_grams + 2 * GRAM_SIZE);  // [2][BLOCK]
    Move *moves = (Move *)(stored_examples + 2 * BLOCK);  // [COLUMNS][BLOCK]
    double *my_drift = (double *)(moves + COLUMNS * BLOCK);  // [COLUMNS][WIDTH]
    double *dues = my_drift + COLUMNS * WIDTH;  // [COLUMNS][BLOCK]: τ times the clock
    REAL *my_w = (REAL *)(drift ? dues + COLUMNS * BLOCK : my_drift);  // [COLUMNS][WIDTH]
    REAL *sums = my_w + COLUMNS * WIDTH;  // [COLUMNS][SHARES][BLOCK]
#if CLUSTER > 1
    REAL *sent = sums + COLUMNS * MULTIPLIERS;  // [2][CLUSTER][COLUMNS][BLOCK]
#endif
    __shared__ int found[COLUMNS];
    __shared__ Arrival rows_here[STAGES], grams_here[2], sums_here[2];

    const int thread = threadIdx.x, lane = thread & 31, rank = blockIdx.x % CLUSTER;
    const int first_column = blockIdx.x / CLUSTER * COLUMNS;
    const int64 blocks = (rows + BLOCK - 1) / BLOCK;

    auto copy_rows = [&](int64 block) {  // by multipliers
        if (block < blocks) {
            const REAL *from = packed + (block * CLUSTER + rank) * BLOCK * WIDTH;
            copy(stored_rows + (block % STAGES) * BLOCK * WIDTH, from, BLOCK * WIDTH * sizeof(REAL), &rows_here[block % STAGES]);
            end_copies(&rows_here[block % STAGES], BLOCK * WIDTH * sizeof(REAL));
        }
    };
    auto copy_grams = [&](int64 block) {
        if (block < blocks) {
            Arrival *arrival = &grams_here[block & 1];
            copy(stored_grams + (block & 1) * GRAM_SIZE, grams + block * GRAM_SIZE, GRAM_SIZE * sizeof(REAL), arrival);
            copy(stored_examples + (block & 1) * BLOCK, examples + block * BLOCK, BLOCK * sizeof(Example), arrival);
            end_copies(arrival, GRAM_SIZE * sizeof(REAL) + BLOCK * sizeof(Example));
        }
    };

    for (int e = thread; e < COLUMNS * WIDTH; e += THREADS) {
        const int64 column = first_column + e / WIDTH, at = (column * CLUSTER + rank) * WIDTH + e % WIDTH;
        my_w[e] = column < columns ? w[at] : (REAL)0;
        if (drift) my_drift[e] = column < columns ? drift[at] : 0.0;
    }
    if (thread == 0) {
        for (int s = 0; s < STAGES; s++) set_up(&rows_here[s]);
        for (int s = 0; s < 2; s++) set_up(&grams_here[s]), set_up(&sums_here[s]);
        publish_set_up();
    }
    __syncthreads();
    cluster_barrier();  // nobody sends before all have begun

    if (thread < MULTIPLIERS) {
        Vector held[OF_A_THREAD];  // of a row
        auto take_rows = [&](int64 block) {
            await(&rows_here[block % STAGES], block / STAGES);
#if __CUDA_ARCH__ < 900
            barrier_of_multipliers();
#endif
            const Vector *from = (const Vector *)(stored_rows + (block % STAGES) * BLOCK * WIDTH + thread % BLOCK * WIDTH);
#pragma unroll
            for (int j = 0; j < OF_A_THREAD; j++)
                if (j * SHARES + thread / BLOCK < VECTORS) held[j] = from[j * SHARES + thread / BLOCK];
        };
        for (int64 block = 0; block < STAGES; block++) copy_rows(block);
        for (int64 block = 0; block < 2; block++) copy_grams(block);
        take_rows(0);
        for (int64 block = 0; block < blocks; block++) {
            const REAL *x = stored_rows + (block % STAGES) * BLOCK * WIDTH;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {  // multiply
                const Vector *of_column = (const Vector *)(my_w + c * WIDTH);
                REAL sum[UNITS];
#pragma unroll
                for (int u = 0; u < UNITS; u++) sum[u] = 0;
#pragma unroll
                for (int j = 0; j < OF_A_THREAD; j++)
                    if (j * SHARES + thread / BLOCK < VECTORS) {
                        const Vector b = of_column[j * SHARES + thread / BLOCK];
#pragma unroll
                        for (int u = 0; u < UNITS; u++) sum[u] = fma(held[j].at[u], b.at[u], sum[u]);
                    }
                REAL total = sum[0];
#pragma unroll
                for (int u = 1; u < UNITS; u++) total += sum[u];
                sums[c * MULTIPLIERS + thread] = total;
            }
#if CLUSTER > 1
            if (drift) {
                asm volatile("bar.sync 2, %0;" ::"n"(THREADS) : "memory");  // those who decide are through with the last rows
                if (block > 0) copy_rows(block - 1 + STAGES);
            } else
                barrier_of_multipliers();
            REAL *to = sent + ((block & 1) * CLUSTER + rank) * COLUMNS * BLOCK;
            for (int e = thread; e < CLUSTER * COLUMNS * BLOCK / UNITS; e += MULTIPLIERS) {
                const int at = e % (COLUMNS * BLOCK / UNITS) * UNITS;
                const REAL *mine = sums + at / BLOCK * MULTIPLIERS + at % BLOCK;
                Vector total = *(const Vector *)mine;
#pragma unroll
                for (int share = 1; share < SHARES; share++) {
                    const Vector more = *(const Vector *)(mine + share * BLOCK);
#pragma unroll
                    for (int u = 0; u < UNITS; u++) total.at[u] += more.at[u];
                }
                send(to + at, e / (COLUMNS * BLOCK / UNITS), total, &sums_here[block & 1]);
            }
#else
#if __CUDA_ARCH__ < 900
            await(&grams_here[block & 1], block >> 1);
#endif
            __syncthreads();  // the sums are there
            if (drift && block > 0) copy_rows(block - 1 + STAGES);
#endif
            if (block + 1 < blocks) take_rows(block + 1);
            __syncthreads();  // the decisions are made
            copy_grams(block + 2);
            for (int e = thread; e < COLUMNS * VECTORS; e += MULTIPLIERS) {  // move
                const int c = e / VECTORS, j = e % VECTORS, some = found[c];
                const Move *of_column = moves + c * BLOCK;
                Vector sum = ((Vector *)my_w)[e];
#pragma unroll 4
                for (int q = 0; q < some; q++) {
                    const REAL by = (REAL)of_column[q].tau;
                    const Vector a = ((const Vector *)x)[of_column[q].row * VECTORS + j];
#pragma unroll
                    for (int u = 0; u < UNITS; u++) sum.at[u] = fma(by, a.at[u], sum.at[u]);
                }
                ((Vector *)my_w)[e] = sum;
            }
            barrier_of_multipliers();
            if (!drift) copy_rows(block + STAGES);  // else those who decide may not be through with these rows
        }
    } else {
        const int c = thread / 32 - MULTIPLIERS / 32, column = first_column + c;
        const bool used = column < columns;
        const double before = used ? (double)tallies[column] : 0.0;
        double next_update = before + 1.0, fields[FIELDS];
        int64 mistakes = 0;
#pragma unroll
        for (int f = 0; f < FIELDS; f++) fields[f] = rule[f];
        for (int64 block = 0; block < blocks; block++) {
            const REAL *gram = stored_grams + (block & 1) * GRAM_SIZE;
            const int64 first = block * BLOCK;
            const int live = used ? (int)min((int64)BLOCK, rows - first) : 0;
            REAL sign[GROUPS], score[GROUPS] = {};  // of a row, and its score times the sign
            double length[GROUPS], share[GROUPS], tau[GROUPS];
#if CLUSTER > 1
            if (drift) asm volatile("bar.arrive 2, %0;" ::"n"(THREADS) : "memory");
            if (c == 0 && lane == 0) announce(&sums_here[block & 1], CLUSTER * COLUMNS * BLOCK * sizeof(REAL));
#else
            __syncthreads();  // the sums are there
#endif
            await(&grams_here[block & 1], block >> 1);
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const Example example = stored_examples[(block & 1) * BLOCK + min(g * 32 + lane, BLOCK - 1)];
                const bool positive = example.label == (BINARY ? 1 : column);
                sign[g] = positive ? 1 : -1;
                length[g] = example.length;
                share[g] = positive || BINARY ? example.weight * example.of_class : example.weight;
            }
#if CLUSTER > 1
            await(&sums_here[block & 1], block >> 1);
            const REAL *addends = sent + (block & 1) * CLUSTER * COLUMNS * BLOCK + c * BLOCK;
            const int some = CLUSTER, apart = COLUMNS * BLOCK;
#else
            const REAL *addends = sums + c * MULTIPLIERS;
            const int some = SHARES, apart = BLOCK;
#endif
            auto decide = [&](int g) {  // τ of each row of a group
                tau[g] = step(fields, (double)score[g], length[g], next_update, sign[g] > 0);
                if (WEIGHTED) tau[g] *= share[g];
            };
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                if (lane < AT_ONCE)
#pragma unroll
                    for (int a = 0; a < some; a++) score[g] += addends[a * apart + g * 32 + lane];
                score[g] *= sign[g];
                decide(g);
            }
            int moved = 0;
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                int next = g * 32 + lane < live ? 0 : 32;
                if (moved) decide(g);
                while (true) {
                    const unsigned moving = __ballot_sync(WHOLE_WARP, is_step(tau[g]) && lane >= next);
                    if (!moving) break;
                    const int i = __ffs(moving) - 1;
                    const REAL *products = gram + first_of_group(g) + i * (BLOCK - 32 * g) + lane;
                    const REAL by = __shfl_sync(WHOLE_WARP, sign[g] * (REAL)tau[g], i);
                    if (lane == i) moves[c * BLOCK + moved] = Move{sign[g] > 0 ? tau[g] : -tau[g], g * 32 + i, 0};
                    if (lane > i && lane < AT_ONCE) score[g] = fma(sign[g] * by, products[0], score[g]);
#pragma unroll
                    for (int h = g + 1; h < GROUPS; h++) score[h] = fma(sign[h] * by, products[32 * (h - g)], score[h]);
                    moved++;
                    next_update += 1.0;
                    next = max(next, i + 1);
                    decide(g);
                }
            }
            if (lane == 0) found[c] = moved;
            __syncthreads();  // the decisions are made
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const int row = g * 32 + lane;
                if (BINARY) mistakes += __popc(__ballot_sync(WHOLE_WARP, row < live && !(score[g] > 0)));
                if (row < live && rank == 0) {
                    if (!is_number(score[g])) note_broken(counts, position + first + row);
                    if (!BINARY) visits[(int64)column * rows + first + row] = sign[g] * score[g];
                }
            }
            if (drift) {
                for (int q = lane; q < moved; q += 32) {
                    const Move move = moves[c * BLOCK + q];
                    dues[c * BLOCK + q] = move.tau * (double)(clock + position + first + move.row);
                }
                __syncwarp();
                for (int j = lane; j < VECTORS && moved; j += 32) {
                    const Vector *x = (const Vector *)(stored_rows + (block % STAGES) * BLOCK * WIDTH) + j;
                    double *at = my_drift + c * WIDTH + j * UNITS, sum[UNITS];
#pragma unroll
                    for (int u = 0; u < UNITS; u++) sum[u] = at[u];
#pragma unroll 4
                    for (int q = 0; q < moved; q++) {
                        const double due = dues[c * BLOCK + q];
                        const Vector a = x[moves[c * BLOCK + q].row * VECTORS];
#pragma unroll
                        for (int u = 0; u < UNITS; u++) sum[u] = fma(due, (double)a.at[u], sum[u]);
                    }
#pragma unroll
                    for (int u = 0; u < UNITS; u++) at[u] = sum[u];
                }
            }
        }
        if (lane == 0 && rank == 0 && used) {
            tallies[column] = (int64)(next_update - 1.0);
            atomicAdd((uint64 *)&counts->updates, (uint64)(next_update - 1.0 - before));
            if (BINARY) atomicAdd((uint64 *)&counts->mistakes, (uint64)mistakes);
        }
    }
    __syncthreads();
    for (int e = thread; e < COLUMNS * WIDTH; e += THREADS) {
        const int64 column = first_column + e / WIDTH, at = (column * CLUSTER + rank) * WIDTH + e % WIDTH;
        if (column < columns) {
            w[at] = my_w[e];
            if (drift) drift[at] = my_drift[e];
        }
    }
    cluster_barrier();  // nobody leaves while others send
}

// Counts rows whose class did not have the highest score when they were visited; visits is [class][row], the scores.
extern "C" __global__ void count_mistakes(const REAL *visits, const Example *examples, int64 rows, int classes, Counts *counts) {
    int64 row = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    bool wrong = false;
    if (row < rows) {
        const int label = examples[row].label;
        const REAL own = visits[(int64)label * rows + row];
        for (int k = 0; k < classes && !wrong; k++) wrong = k != label && !(own > visits[(int64)k * rows + row]);
    }
    const unsigned all = __ballot_sync(WHOLE_WARP, wrong);
    if ((threadIdx.x & 31) == 0 && all) atomicAdd((uint64 *)&counts->mistakes, (uint64)__popc(all));
}
