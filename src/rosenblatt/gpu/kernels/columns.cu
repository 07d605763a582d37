// Two classes, and each class against the rest: every weight vector is learned by itself, from rows that come block by block.
//
// A weight vector belongs to a cluster of CLUSTER thread blocks, each of which holds a slice of it. A block of BLOCK rows is learned
// from in four steps: every thread block multiplies its slice of the rows with its slice of the weights and sends the sums to all
// others; each adds them up in the same order; one warp of each goes through the scores in the order of the rows, and at a move τ of row i adds
// τ·gram[i][j] to the score of each later row j; then each adds τ times the rows that moved to its slice of the weights. All thread
// blocks of a cluster make the same decisions from the same numbers, so moves need not be sent. Rows, Gram matrices and labels of the
// blocks to come are copied meanwhile.

#define GROUPS ((BLOCK + 31) / 32)  // of 32 rows, one for each lane of the warp that decides
#define SHARES (THREADS / BLOCK)  // threads that share a row
#define AT_ONCE (BLOCK < 32 ? BLOCK : 32)

// Of a Gram matrix the rows of group g are kept from column 32·g on, for a row changes the scores of later rows only.
__device__ __forceinline__ constexpr int first_of_group(int group) { return 32 * group * BLOCK - 512 * group * (group - 1); }
#define GRAM_SIZE (BLOCK <= 32 ? BLOCK * BLOCK : first_of_group(GROUPS))

struct Move {
    double tau;  // with the sign of the label
    int row;
    int pad;
};

#if CLUSTER > 1
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)

__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void send(const void *to, int rank, Vector value) {  // to the same place in another thread block
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(to)), "r"(rank));
    const uint4 bits = *(uint4 *)&value;
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(bits.x), "r"(bits.y), "r"(bits.z),
                 "r"(bits.w)
                 : "memory");
}
#else
#define OF_A_CLUSTER
__device__ __forceinline__ void cluster_barrier() {}
#endif

extern "C" __global__ void OF_A_CLUSTER __launch_bounds__(THREADS, 1) learn_columns(
    const REAL *packed, const REAL *grams, const Example *examples, int64 rows, int64 position, int64 clock, int width,
    const double *rule, REAL *w, double *drift, int64 *tallies, REAL *visits, Counts *counts
) {
    extern __shared__ __align__(16) unsigned char memory[];
    REAL *stored_rows = (REAL *)memory;  // [3][BLOCK][width]
    REAL *stored_grams = stored_rows + 3 * BLOCK * width;  // [2][GRAM_SIZE]
    Example *stored_examples = (Example *)(stored_grams + 2 * GRAM_SIZE);  // [2][BLOCK]
    Move *moves = (Move *)(stored_examples + 2 * BLOCK);  // [BLOCK]
    double *my_drift = (double *)(moves + BLOCK);  // [width]
    REAL *my_w = (REAL *)(my_drift + (drift ? width : 0));  // [width]
    REAL *sums = my_w + width;  // [SHARES][BLOCK]
    __shared__ int found;

    const int thread = threadIdx.x, lane = thread & 31, rank = blockIdx.x % CLUSTER, column = blockIdx.x / CLUSTER;
    const int vectors = width / UNITS;
    const int64 blocks = (rows + BLOCK - 1) / BLOCK;
    const int64 slice = (int64)column * CLUSTER * width + (int64)rank * width;
    int64 tally = tallies[column], mistakes = 0, updates = 0;

    auto copy_rows = [&](int64 block) {
        if (block < blocks) {
            const Vector *from = (const Vector *)packed + (block * CLUSTER + rank) * BLOCK * vectors;
            Vector *to = (Vector *)stored_rows + (block % 3) * BLOCK * vectors;
            for (int i = thread; i < BLOCK * vectors; i += THREADS) copy_async(to + i, from + i);
        }
        commit_copies();
    };
    auto copy_grams = [&](int64 block) {
        if (block < blocks) {
            const REAL *from = grams + block * BLOCK * BLOCK;
            REAL *to = stored_grams + (block & 1) * GRAM_SIZE;
            for (int i = thread; i < BLOCK * BLOCK / UNITS; i += THREADS) {
                int row = i / (BLOCK / UNITS), at = i % (BLOCK / UNITS) * UNITS, group = row / 32;
                if (at >= 32 * group)
                    copy_async(
                        to + first_of_group(group) + (row - 32 * group) * (BLOCK - 32 * group) + at - 32 * group,
                        from + row * BLOCK + at
                    );
            }
            const int4 *of_block = (const int4 *)(examples + block * BLOCK);
            int4 *there = (int4 *)(stored_examples + (block & 1) * BLOCK);
            for (int i = thread; i < BLOCK * 2; i += THREADS) copy_async(there + i, of_block + i);
        }
        commit_copies();
    };

    for (int f = thread; f < width; f += THREADS) {
        my_w[f] = w[slice + f];
        if (drift) my_drift[f] = drift[slice + f];
    }
    copy_rows(0);
    copy_grams(0);
    copy_rows(1);
    cluster_barrier();  // nobody sends before all have begun
    for (int64 block = 0; block < blocks; block++) {
        const REAL *x = stored_rows + (block % 3) * BLOCK * width;
        wait_for_copies<2>();  // these rows are here; the Gram matrix and the next rows may be on their way
        __syncthreads();
        copy_grams(block + 1);
        copy_rows(block + 2);
        {  // multiply
            const Vector *mine = (const Vector *)(x + (thread % BLOCK) * width);
            REAL sum[UNITS];
#pragma unroll
            for (int u = 0; u < UNITS; u++) sum[u] = 0;
#pragma unroll 4
            for (int j = thread / BLOCK; j < vectors; j += SHARES) {
                Vector a = mine[j], b = ((const Vector *)my_w)[j];
#pragma unroll
                for (int u = 0; u < UNITS; u++) sum[u] = fma(a.at[u], b.at[u], sum[u]);
            }
            REAL total = sum[0];
#pragma unroll
            for (int u = 1; u < UNITS; u++) total += sum[u];
            sums[thread] = total;
        }
        wait_for_copies<3>();  // the Gram matrix is here too
        __syncthreads();
#if CLUSTER > 1
        REAL *all = sums + THREADS + (block & 1) * CLUSTER * BLOCK;  // [2][CLUSTER][BLOCK]
        for (int i = thread; i < CLUSTER * BLOCK / UNITS; i += THREADS) {  // send
            int at = i % (BLOCK / UNITS) * UNITS;
            Vector total = *(Vector *)(sums + at);
#pragma unroll
            for (int share = 1; share < SHARES; share++)
#pragma unroll
                for (int u = 0; u < UNITS; u++) total.at[u] += sums[share * BLOCK + at + u];
            send(all + rank * BLOCK + at, i / (BLOCK / UNITS), total);
        }
        cluster_barrier();
#else
        const REAL *all = sums;
#endif
        if (thread < 32) {  // decide
            const int addends = CLUSTER > 1 ? CLUSTER : SHARES;
            const REAL *gram = stored_grams + (block & 1) * GRAM_SIZE;
            const Example *here = stored_examples + (block & 1) * BLOCK;
            const int64 first = block * BLOCK;
            const int live = (int)min((int64)BLOCK, rows - first);
            REAL score[GROUPS];
            int moved = 0;
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                score[g] = 0;
                if (lane < AT_ONCE)
#pragma unroll
                    for (int a = 0; a < addends; a++) score[g] += all[a * BLOCK + g * 32 + lane];
            }
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                const Example example = here[min(g * 32 + lane, BLOCK - 1)];
                const bool live_lane = g * 32 + lane < live, positive = example.label == (BINARY ? 1 : column);
                const double sign = positive ? 1.0 : -1.0;
                const double share = positive || BINARY ? example.weight * example.of_class : example.weight;
                const int wide = BLOCK - 32 * g;
                int next = 0;
                double m;
                while (true) {
                    m = sign * (double)score[g];
                    double tau = 0.0;
                    if (live_lane && lane >= next)
                        tau = share * step(rule, m, example.length, (double)(tally + 1), positive);
                    const unsigned moving = __ballot_sync(WHOLE_WARP, tau != 0.0);
                    if (!moving) break;
                    const int i = __ffs(moving) - 1;
                    tau = __shfl_sync(WHOLE_WARP, sign * tau, i);
                    const REAL by = (REAL)tau;
                    const REAL *products = gram + first_of_group(g) + i * wide + lane;
                    if (lane > i && lane < AT_ONCE) score[g] = fma(by, products[0], score[g]);
#pragma unroll
                    for (int h = g + 1; h < GROUPS; h++) score[h] = fma(by, products[32 * (h - g)], score[h]);
                    if (lane == 0) moves[moved] = Move{tau, g * 32 + i, 0};
                    moved++;
                    tally++;
                    next = i + 1;
                }
                if (live_lane && rank == 0) {
                    if (!is_number(score[g])) note_broken(counts, position + first + g * 32 + lane);
                    if (!BINARY) visits[(int64)column * rows + first + g * 32 + lane] = score[g];
                }
                if (BINARY) mistakes += __popc(__ballot_sync(WHOLE_WARP, live_lane && !(m > 0.0)));
            }
            updates += moved;
            if (lane == 0) found = moved;
        }
        __syncthreads();
        const int moved = found;
        const int begin = drift ? (thread < THREADS / 2 ? thread : vectors) : thread;  // move
        const int step_of_threads = drift ? THREADS / 2 : THREADS;
        for (int j = begin; j < vectors; j += step_of_threads) {
            Vector sum = ((Vector *)my_w)[j];
#pragma unroll 4
            for (int q = 0; q < moved; q++) {
                const REAL by = (REAL)moves[q].tau;
                const Vector a = ((const Vector *)(x + moves[q].row * width))[j];
#pragma unroll
                for (int u = 0; u < UNITS; u++) sum.at[u] = fma(by, a.at[u], sum.at[u]);
            }
            ((Vector *)my_w)[j] = sum;
        }
        if (drift && thread >= THREADS / 2)
            for (int j = thread - THREADS / 2; j < vectors; j += THREADS / 2) {
                double sum[UNITS];
#pragma unroll
                for (int u = 0; u < UNITS; u++) sum[u] = my_drift[j * UNITS + u];
#pragma unroll 4
                for (int q = 0; q < moved; q++) {
                    const double due = moves[q].tau * (double)(clock + position + block * BLOCK + moves[q].row);
                    const Vector a = ((const Vector *)(x + moves[q].row * width))[j];
#pragma unroll
                    for (int u = 0; u < UNITS; u++) sum[u] = fma(due, (double)a.at[u], sum[u]);
                }
#pragma unroll
                for (int u = 0; u < UNITS; u++) my_drift[j * UNITS + u] = sum[u];
            }
    }
    __syncthreads();
    for (int f = thread; f < width; f += THREADS) {
        w[slice + f] = my_w[f];
        if (drift) drift[slice + f] = my_drift[f];
    }
    if (thread == 0 && rank == 0) {
        tallies[column] = tally;
        atomicAdd((uint64 *)&counts->updates, (uint64)updates);
        if (BINARY) atomicAdd((uint64 *)&counts->mistakes, (uint64)mistakes);
    }
    cluster_barrier();  // nobody leaves while others send
}

// Rows whose class did not have the highest score when they were visited; visits is [class][row].
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
