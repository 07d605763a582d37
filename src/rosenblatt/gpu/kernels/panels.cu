// Panels of rows whose scores and Gram matrix are matrix products made before: one decision among all classes, and what a cluster
// cannot hold. The kernels here decide, and note each move as tau[column][row of the panel], 0 where there is none; `apply_moves` then
// adds the rows to the weights and sets tau to 0 again.
//
// scores is [row of the panel][class]; gram is [row][row], symmetric.

struct Entry {  // what a move does to the scores of later rows in one column
    REAL add;  // τ, or −τ in the column that loses
    int column;
    int row;  // of the panel
    int next;  // the next entry of the same column, −1 if there is none
};

struct Choice {
    double tau;
    int label;
    int rival;
};

template <typename SCORE> __device__ __forceinline__ int best_by_shuffles(SCORE &best, int of_lane) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
        const SCORE value = __shfl_xor_sync(WHOLE_WARP, best, distance);
        const int other = __shfl_xor_sync(WHOLE_WARP, of_lane, distance);
        if (other >= 0 && (of_lane < 0 || value > best || (value == best && other < of_lane))) of_lane = other, best = value;
    }
    return of_lane;
}

// The class with the highest score of those that the lanes name (−1: none), the lowest if there are several; `best` becomes its score.
__device__ __forceinline__ int best_of_warp(float &best, int of_lane) {
#if __CUDA_ARCH__ >= 800
    const int bits = __float_as_int(best + 0.0f);  // −0 becomes 0
    const unsigned key = of_lane < 0 ? 0u : (unsigned)bits ^ (bits < 0 ? 0xffffffffu : 0x80000000u);  // in the order of floats
    const unsigned highest = __reduce_max_sync(WHOLE_WARP, key);
    const unsigned first = __reduce_min_sync(WHOLE_WARP, key == highest && of_lane >= 0 ? (unsigned)of_lane : 0xffffffffu);
    best = __int_as_float((int)(highest ^ (highest & 0x80000000u ? 0x80000000u : 0xffffffffu)));
    return (int)first;
#else
    return best_by_shuffles(best, of_lane);
#endif
}
__device__ __forceinline__ int best_of_warp(double &best, int of_lane) { return best_by_shuffles(best, of_lane); }

// One decision among all classes, for one thread block. A warp takes a row, WARPS rows at a time, whose scores and products it keeps in
// the memory of the multiprocessor if that is STAGED, else in the card's. Lane l alone reads and writes the classes l, l + 32, … while
// rows of the same group are put right; before that, a column belongs to the lane that finds its first entry.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 1) decide_jointly(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int classes, int64 position, const double *rule,
    double *tau, int64 *tallies, Counts *counts
) {
    extern __shared__ __align__(16) unsigned char memory[];
    Entry *entries = (Entry *)memory;  // [2 · PANEL]
    int *before = (int *)(entries + 2 * PANEL);  // [2 · PANEL]: the entry before of the same column, −1 if there is none
    REAL *products = (REAL *)(before + 2 * PANEL) + (threadIdx.x >> 5) * PANEL;  // [WARPS][PANEL]
    REAL *staged = (REAL *)(before + 2 * PANEL) + WARPS * PANEL + (threadIdx.x >> 5) * classes;  // [WARPS][classes]
    __shared__ Choice chosen[WARPS];
    __shared__ int moving[2][32];
    __shared__ int wrong;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64 tally = tallies[0];
    double fields[FIELDS];
    int made = 0, linked = 0;  // moves of this panel so far; entries that know the one before
#pragma unroll
    for (int f = 0; f < FIELDS; f++) fields[f] = rule[f];
    if (threadIdx.x == 0) wrong = 0;
    if (threadIdx.x < 64) moving[threadIdx.x >> 5][lane] = 0;
    for (int first = 0; first < rows; first += WARPS) {
        const int row = first + warp;
        const bool live = row < rows;
        const Example example = examples[live ? row : 0];
        REAL *mine = STAGED ? staged : scores + (int64)(live ? row : 0) * classes;
        double m = 0.0, by = 0.0;
        REAL own = 0, best = 0, lane_best = 0;  // the score of the label, the highest other one, and that of the lane's classes
        int rival = -1, lane_rival = -1;

        auto find_best_of_lane = [&]() {
            lane_rival = -1;
#pragma unroll 8
            for (int k = lane; k < classes; k += 32) {
                const REAL value = mine[k];
                if (k != example.label && (lane_rival < 0 || value > lane_best)) lane_rival = k, lane_best = value;
            }
        };
        auto decide = [&]() {
            best = lane_best;
            rival = best_of_warp(best, lane_rival);
            m = rival < 0 ? INFINITE : (double)own - (double)best;
            by = rival < 0 ? 0.0 : step(fields, m, 2.0 * example.length, (double)(tally + made + 1), true);
            by *= example.weight * example.of_class;
        };
        auto set_score = [&](int column, REAL value) {  // whether the best of the lane must be found again
            mine[column] = value;
            if (column == example.label) own = value;
            if (column == example.label || (column == lane_rival && !(value >= lane_best))) return column == lane_rival;
            if (lane_rival < 0 || value > lane_best || column == lane_rival || (value == lane_best && column < lane_rival))
                lane_rival = column, lane_best = value;
            return false;
        };

        if (live) {
            const REAL *of_row = gram + (int64)row * PANEL;
            for (int i = lane; i < first + WARPS; i += 32) products[i] = of_row[i];
            if (STAGED) {
                const REAL *from = scores + (int64)row * classes;
#pragma unroll 8
                for (int k = lane; k < classes; k += 32) staged[k] = from[k];
            }
        }
        for (int e = linked + warp; e < 2 * made; e += WARPS) {  // find the entry before of the same column
            int found = -1;
            for (int back = e - 1; back >= 0 && found < 0; back -= 32) {
                const bool same = back >= lane && entries[back - lane].column == entries[e].column;
                const unsigned all = __ballot_sync(WHOLE_WARP, same);
                if (all) found = back - (__ffs(all) - 1);
            }
            if (lane == 0) {
                before[e] = found;
                if (found >= 0) entries[found].next = e;
            }
        }
        linked = 2 * made;
        __syncthreads();
        if (live) {
            for (int e = lane; e < linked; e += 32)  // what earlier moves of this panel have changed
                if (before[e] < 0) {
                    REAL score = mine[entries[e].column];
                    for (int at = e; at >= 0; at = entries[at].next)
                        score = fma(entries[at].add, products[entries[at].row], score);
                    mine[entries[e].column] = score;
                }
            __syncwarp();
            find_best_of_lane();
            own = mine[example.label];
            decide();
            if (lane == 0) chosen[warp] = Choice{by, example.label, rival};
        }
        if (lane == 0) moving[0][warp] = live && by != 0.0;
        __syncthreads();
        int next = 0, turn = 0;
        while (true) {
            const unsigned all = __ballot_sync(WHOLE_WARP, moving[turn][lane] != 0 && lane >= next);
            if (!all) break;
            const int i = __ffs(all) - 1;
            const Choice move = chosen[i];
            made++;
            next = i + 1;
            if (live && warp > i) {
                const REAL add = (REAL)move.tau * products[first + i];
                bool again = false;
                if (lane == (move.label & 31)) again |= set_score(move.label, mine[move.label] + add);
                if (lane == (move.rival & 31)) again |= set_score(move.rival, mine[move.rival] - add);
                if (again) find_best_of_lane();
                if (move.label == example.label || move.rival == example.label)
                    own = __shfl_sync(WHOLE_WARP, own, example.label & 31);
                decide();
                if (lane == 0) chosen[warp] = Choice{by, example.label, rival};
            }
            if (lane == 0) {
                moving[turn ^ 1][warp] = live && warp > i && by != 0.0;
                if (warp == i) {  // whose row moves, and who has nothing else to do
                    entries[2 * made - 2] = Entry{(REAL)move.tau, move.label, first + i, -1};
                    entries[2 * made - 1] = Entry{(REAL)-move.tau, move.rival, first + i, -1};
                    tau[(int64)move.label * PANEL + first + i] = move.tau;
                    tau[(int64)move.rival * PANEL + first + i] = -move.tau;
                }
            }
            turn ^= 1;
            __syncthreads();
        }
        if (live && lane == 0) {
            if (!is_number(own) || (rival >= 0 && !is_number(best))) note_broken(counts, position + row);
            if (!(m > 0.0)) atomicAdd(&wrong, 1);
        }
        __syncthreads();  // before `moving` is written again
    }
    if (threadIdx.x == 0) {
        tallies[0] = tally + made;
        counts->mistakes += wrong;
        counts->updates += made;
    }
}

// Two classes, or each class against the rest: one warp a weight vector. Scores are brought up to date in place.
extern "C" __global__ void decide_columns(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int columns, int64 position,
    const double *rule, double *tau, int64 *tallies, Counts *counts
) {
    const int lane = threadIdx.x & 31, column = blockIdx.x;
    int64 tally = tallies[column], updates = 0;
    for (int first = 0; first < rows; first += 32) {
        const int row = first + lane;
        const bool live = row < rows;
        const Example example = examples[live ? row : 0];
        const bool positive = example.label == (columns == 1 ? 1 : column);
        const double sign = positive ? 1.0 : -1.0;
        const double share = positive || columns == 1 ? example.weight * example.of_class : example.weight;
        REAL score = live ? scores[(int64)row * columns + column] : (REAL)0;
        int next = 0;
        while (true) {
            double by = 0.0;
            if (live && lane >= next)
                by = share * step(rule, sign * (double)score, example.length, (double)(tally + 1), positive);
            const unsigned all = __ballot_sync(WHOLE_WARP, by != 0.0);
            if (!all) break;
            const int i = __ffs(all) - 1;
            by = __shfl_sync(WHOLE_WARP, sign * by, i);
            const REAL *products = gram + (int64)(first + i) * PANEL;
            if (live && lane > i) score = fma((REAL)by, products[row], score);
            for (int later = row + 32; later < rows; later += 32)
                scores[(int64)later * columns + column] =
                    fma((REAL)by, products[later], scores[(int64)later * columns + column]);
            if (lane == 0) tau[(int64)column * PANEL + first + i] = by;
            tally++;
            updates++;
            next = i + 1;
        }
        if (live) scores[(int64)row * columns + column] = score;
    }
    if (lane == 0) {
        tallies[column] = tally;
        atomicAdd((uint64 *)&counts->updates, (uint64)updates);
    }
}

// The moves of rows that all meet the same weights: a batch, or a part of one. One warp a row; `joint` as above.
extern "C" __global__ void decide_batch(
    const REAL *scores, const Example *examples, int rows, int columns, int joint, const double *rule, double *tau,
    const int64 *tallies
) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) return;
    const Example example = examples[row];
    const REAL *mine = scores + (int64)row * columns;
    if (joint) {
        REAL best = 0;
        int rival = -1;
        for (int k = lane; k < columns; k += 32)
            if (k != example.label && (rival < 0 || mine[k] > best)) rival = k, best = mine[k];
        rival = best_of_warp(best, rival);
        if (lane == 0 && rival >= 0) {
            const double m = (double)mine[example.label] - (double)best;
            const double by = example.weight * example.of_class *
                              step(rule, m, 2.0 * example.length, (double)(tallies[0] + 1), true);
            tau[(int64)example.label * PANEL + row] = by;
            tau[(int64)rival * PANEL + row] = -by;
        }
        return;
    }
    for (int k = lane; k < columns; k += 32) {
        const bool positive = example.label == (columns == 1 ? 1 : k);
        const double sign = positive ? 1.0 : -1.0;
        const double share = positive || columns == 1 ? example.weight * example.of_class : example.weight;
        tau[(int64)k * PANEL + row] =
            sign * share * step(rule, sign * (double)mine[k], example.length, (double)(tallies[k] + 1), positive);
    }
}

// moves[counter] += the moves that each counter makes in these rows. One thread block a counter; `joint` has one counter, whose moves
// stand in the columns of their labels.
extern "C" __global__ void count_moves(
    const double *tau, const Example *examples, int rows, int joint, double *moves
) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int mine = 0;
    for (int row = threadIdx.x; row < rows; row += blockDim.x)
        mine += tau[(int64)(joint ? examples[row].label : blockIdx.x) * PANEL + row] != 0.0;
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) moves[blockIdx.x] += total;
}

// A batch is one update of each counter that moved in it; moves becomes 0 again.
extern "C" __global__ void end_batch(int counters, int64 *tallies, double *moves, Counts *counts) {
    const int counter = blockIdx.x * blockDim.x + threadIdx.x;
    if (counter < counters && moves[counter] > 0.0) {
        tallies[counter] += 1;
        moves[counter] = 0.0;
        atomicAdd((uint64 *)&counts->updates, (uint64)1);
    }
}

// Rows that were predicted wrong, and rows whose scores are not numbers, from the scores with which they were decided.
extern "C" __global__ void count_wrong(
    const REAL *scores, const Example *examples, int rows, int columns, int64 position, Counts *counts
) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) return;
    const REAL *mine = scores + (int64)row * columns;
    const int label = examples[row].label;
    bool wrong = false, broken = false;
    if (columns == 1)
        wrong = !((label == 1 ? 1.0 : -1.0) * (double)mine[0] > 0.0);
    else
        for (int k = lane; k < columns; k += 32) wrong |= k != label && !(mine[label] > mine[k]);
    for (int k = lane; k < columns; k += 32) broken |= !is_number(mine[k]);
    wrong = __any_sync(WHOLE_WARP, wrong);
    broken = __any_sync(WHOLE_WARP, broken);
    if (lane == 0) {
        if (wrong) atomicAdd((uint64 *)&counts->mistakes, (uint64)1);
        if (broken) note_broken(counts, position + row);
    }
}

// weights[column] += Σ τ·row, in the order of the rows, and drift[column] += Σ clock·τ·row; tau becomes 0 again. One thread block a
// column. `moves` divides (the mean of a batch; null: the sum); `clocks` is 1 where the clock goes on with each row, 0 for a batch.
extern "C" __global__ void apply_moves(
    const REAL *packed, double *tau, int rows, int width, REAL *weights, double *drift, const double *moves,
    int joint, int64 clock, int clocks
) {
    extern __shared__ __align__(16) unsigned char memory[];
    double *by = (double *)memory;  // [PANEL]
    int *row = (int *)(by + PANEL);  // [PANEL]
    __shared__ int found;
    double *of_column = tau + (int64)blockIdx.x * PANEL;
    __shared__ unsigned masks[PANEL / 32 + 1];
    const int lane = threadIdx.x & 31;
    for (int at = threadIdx.x; at < (rows + 31) / 32 * 32; at += blockDim.x) {
        const unsigned all = __ballot_sync(WHOLE_WARP, at < rows && of_column[at] != 0.0);
        if (lane == 0) masks[at / 32] = all;
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // list the rows that move
        const double parts = moves ? moves[joint ? 0 : blockIdx.x] : 1.0;
        int so_far = 0;
        for (int group = 0; group < (rows + 31) / 32; group++) {
            const unsigned all = masks[group];
            if (all >> lane & 1) {
                const int at = so_far + __popc(all & ((1u << lane) - 1)), of_panel = 32 * group + lane;
                by[at] = of_column[of_panel] / parts;
                row[at] = of_panel;
                of_column[of_panel] = 0.0;
            }
            so_far += __popc(all);
        }
        if (lane == 0) found = so_far;
    }
    __syncthreads();
    const int some = found;
    if (some == 0) return;
    for (int f = threadIdx.x; f < width; f += blockDim.x) {
        const int64 at = (int64)blockIdx.x * width + f;
        REAL sum = weights[at];
        double late = drift ? drift[at] : 0.0;
#pragma unroll 4
        for (int q = 0; q < some; q++) {
            const REAL value = packed[(int64)row[q] * width + f];
            sum = fma((REAL)by[q], value, sum);
            if (drift) late = fma(by[q] * (double)(clock + clocks * row[q]), (double)value, late);
        }
        weights[at] = sum;
        if (drift) drift[at] = late;
    }
}
