// Panels of rows whose scores and Gram matrix were computed before as matrix products: for one decision among all classes
// (jointly), for batches, and for weight vectors that no cluster can hold. The kernels here decide, and store each move as
// tau[column][row of the panel], 0 where there is none; `apply_moves` then adds the rows to the weights and sets tau to 0
// again. A column is a weight vector.
//
// scores is [row of the panel][pitch], of which the first are the classes; gram is [row][row], symmetric.

struct alignas(16) Entry {  // what a move does to the scores of later rows in one column
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

#define LOWEST (-INFINITE)

// The highest of the numbers of 32 lanes.
__device__ __forceinline__ float highest_of_warp(float value) {
#if __CUDA_ARCH__ >= 800
    const int bits = __float_as_int(value + 0.0f);  // −0 becomes 0
    const unsigned key = (unsigned)bits ^ (bits < 0 ? 0xffffffffu : 0x80000000u);  // in the order of floats
    const unsigned highest = __reduce_max_sync(WHOLE_WARP, key);
    return __int_as_float((int)(highest ^ (highest & 0x80000000u ? 0x80000000u : 0xffffffffu)));
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1)
        value = fmaxf(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
    return value;
#endif
}
__device__ __forceinline__ double highest_of_warp(double value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) value = fmax(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
    return value;
}

__device__ __forceinline__ int least_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(WHOLE_WARP, value);
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) value = min(value, __shfl_xor_sync(WHOLE_WARP, value, distance));
    return value;
#endif
}

// The scores of a row are `pitch` numbers: those of the classes, then padding of LOWEST. Lane l handles the vectors l,
// l + 32, ….
__device__ __forceinline__ int lane_of(int column) { return column / UNITS & 31; }

__device__ __forceinline__ REAL highest_of_lane(const REAL *scores, int pitch) {
    REAL highest = (REAL)LOWEST;
#pragma unroll 8
    for (int v = threadIdx.x & 31; v < pitch / UNITS; v += 32) {
        const Vector some = ((const Vector *)scores)[v];
#pragma unroll
        for (int u = 0; u < UNITS; u++) highest = some.at[u] > highest ? some.at[u] : highest;
    }
    return highest;
}

// The first class whose score is `best`, which is the highest of the warp.
__device__ __forceinline__ int first_with(REAL best, REAL of_lane, const REAL *scores, int pitch) {
    int first = 0x7fffffff;
    if (of_lane == best)
#pragma unroll 8
        for (int v = threadIdx.x & 31; v < pitch / UNITS; v += 32) {
            const Vector some = ((const Vector *)scores)[v];
#pragma unroll
            for (int u = UNITS - 1; u >= 0; u--)
                if (some.at[u] == best) first = min(first, v * UNITS + u);
        }
    return least_of_warp(first);
}

// One decision among all classes, by one thread block. A warp takes a row, WARPS rows at a time; their Gram matrix and, if
// STAGED, their scores are copied to shared memory while the rows before are decided. The score of the label is kept
// apart, in `own`, so that the highest of the others is the rival's. `last` is the last entry of each column, −1 if there
// is none; before and after the kernel all are −1.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 1) decide_jointly(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int classes, int pitch, int64 position,
    const double *rule, double *tau, int64 *tallies, int *last, Counts *counts
) {
    extern __shared__ __align__(16) unsigned char memory[];
    REAL *stored_products = (REAL *)memory;  // [2][WARPS][PANEL]
    REAL *stored_scores = stored_products + 2 * WARPS * PANEL;  // [2][WARPS][pitch]
    Entry *entries = (Entry *)(stored_scores + (STAGED ? 2 * WARPS * pitch : 0));  // [2 · PANEL]
    int *before = (int *)(entries + 2 * PANEL);  // [2 · PANEL]: the entry before of the same column, −1 if there is none
    __shared__ Choice chosen[WARPS];
    __shared__ int moving[2][32];
    __shared__ int wrong;
    __shared__ Arrival here[2];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64 tally = tallies[0];
    double next_update = (double)(tally + 1), fields[FIELDS];
    int made = 0, linked = 0;  // moves of this panel so far; entries that know the one before

    auto copy_group = [&](int group) {
        if (group * WARPS < rows) {
            const unsigned of_products = WARPS * PANEL * sizeof(REAL), of_scores = STAGED ? WARPS * pitch * sizeof(REAL) : 0;
            Arrival *arrival = &here[group & 1];
            copy(stored_products + (group & 1) * WARPS * PANEL, gram + (int64)group * WARPS * PANEL, of_products, arrival);
            if (STAGED)
                copy(stored_scores + (group & 1) * WARPS * pitch, scores + (int64)group * WARPS * pitch, of_scores, arrival);
            end_copies(arrival, of_products + of_scores);
        }
    };

#pragma unroll
    for (int f = 0; f < FIELDS; f++) fields[f] = rule[f];
    if (threadIdx.x == 0) {
        wrong = 0;
        set_up(&here[0]);
        set_up(&here[1]);
        publish_set_up();
    }
    if (threadIdx.x < 32) moving[0][lane] = moving[1][lane] = 0;
    __syncthreads();
    copy_group(0);
    for (int first = 0, group = 0; first < rows; first += WARPS, group++) {
        const int row = first + warp;
        const bool live = row < rows;
        const Example example = examples[live ? row : 0];
        const REAL *products = stored_products + ((group & 1) * WARPS + warp) * PANEL;
        REAL *mine = STAGED ? stored_scores + ((group & 1) * WARPS + warp) * pitch : scores + (int64)(live ? row : 0) * pitch;
        const double share = example.weight * example.of_class, twice = 2.0 * example.length;
        double m = 0.0, by = 0.0;
        REAL own = 0, best = 0, of_lane = 0;  // the score of the label, the highest other one, and that of the lane
        int rival = -1;  // the class with the highest one, −1 if it is not known

        auto decide = [&]() {
            best = highest_of_warp(of_lane);
            m = (double)own - (double)best;
            by = best > (REAL)LOWEST ? share * step(fields, m, twice, next_update, true) : 0.0;  // else there is no rival
            if (by != 0.0) {
                if (rival < 0) rival = first_with(best, of_lane, mine, pitch);
                if (lane == 0) chosen[warp] = Choice{by, example.label, rival};
            }
        };
        auto add_to = [&](int column, REAL add, bool &again, bool &rises) {
            if (column == example.label)
                own += add;
            else if (lane == lane_of(column)) {
                const REAL old = mine[column], now = old + add;
                mine[column] = now;
                again |= old == of_lane && now < old;  // the highest score of the lane must be found again
                rises |= now >= best;
                if (now > of_lane) of_lane = now;
            }
        };

        copy_group(group + 1);
        for (int e = linked + lane; warp == 0 && e - lane < 2 * made; e += 32) {  // find the entry before of the same column
            const bool there = e < 2 * made;
            const int column = there ? entries[e].column : -1 - lane;
            const unsigned alike = __match_any_sync(WHOLE_WARP, column), earlier = alike & ((1u << lane) - 1);
            const int found = earlier ? e - lane + 31 - __clz(earlier) : there ? last[column] : -1;
            __syncwarp();
            if (there) {
                before[e] = found;
                if (found >= 0) entries[found].next = e;
                if (!(alike >> lane >> 1)) last[column] = e;
            }
            __syncwarp();
        }
        linked = 2 * made;
        await(&here[group & 1], group >> 1);
        __syncthreads();
        if (live) {
            for (int e = lane; e < linked; e += 32)  // what earlier moves of this panel have changed
                if (before[e] < 0) {
                    Entry entry = entries[e];
                    REAL score = fma(entry.add, products[entry.row], mine[entry.column]);
                    const int column = entry.column;
                    while (entry.next >= 0) {
                        entry = entries[entry.next];
                        score = fma(entry.add, products[entry.row], score);
                    }
                    mine[column] = score;
                }
            __syncwarp();
            own = mine[example.label];
            __syncwarp();
            if (lane == 0) mine[example.label] = (REAL)LOWEST;
            __syncwarp();
            of_lane = highest_of_lane(mine, pitch);
            decide();
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
            next_update += 1.0;
            next = i + 1;
            if (live && warp > i) {
                const REAL add = (REAL)move.tau * products[first + i];
                bool again = false, rises = false;
                add_to(move.label, add, again, rises);
                add_to(move.rival, -add, again, rises);
                if (again) of_lane = highest_of_lane(mine, pitch);
                if (__any_sync(WHOLE_WARP, rises) || rival == move.label || rival == move.rival) rival = -1;
                decide();
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
            if (!is_number(own) || (classes > 1 && !is_number(best))) note_broken(counts, position + row);
            if (!(m > 0.0)) atomicAdd(&wrong, 1);
        }
        __syncthreads();  // before `moving` is written again
    }
    for (int e = threadIdx.x; e < linked; e += 32 * WARPS) last[entries[e].column] = -1;
    if (threadIdx.x == 0) {
        tallies[0] = tally + made;
        counts->mistakes += wrong;
        counts->updates += made;
    }
}

// Two classes, or each class against the rest: one warp a weight vector. Scores are brought up to date in place.
extern "C" __global__ void decide_columns(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int columns, int pitch, int64 position,
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
        REAL score = live ? scores[(int64)row * pitch + column] : (REAL)0;
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
                scores[(int64)later * pitch + column] =
                    fma((REAL)by, products[later], scores[(int64)later * pitch + column]);
            if (lane == 0) tau[(int64)column * PANEL + first + i] = by;
            tally++;
            updates++;
            next = i + 1;
        }
        if (live) scores[(int64)row * pitch + column] = score;
    }
    if (lane == 0) {
        tallies[column] = tally;
        atomicAdd((uint64 *)&counts->updates, (uint64)updates);
    }
}

// The moves of rows that all meet the same weights: a batch, or a part of one. One warp a row; with `joint` it makes one
// decision among all columns, otherwise one for each.
extern "C" __global__ void decide_batch(
    const REAL *scores, const Example *examples, int rows, int columns, int pitch, int joint, const double *rule,
    double *tau, const int64 *tallies
) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) return;
    const Example example = examples[row];
    const REAL *mine = scores + (int64)row * pitch;
    if (joint) {
        REAL of_lane = (REAL)LOWEST;
        for (int k = lane; k < columns; k += 32)
            if (k != example.label && mine[k] > of_lane) of_lane = mine[k];
        const REAL best = highest_of_warp(of_lane);
        int rival = 0x7fffffff;
        for (int k = lane; k < columns && rival == 0x7fffffff; k += 32)
            if (k != example.label && mine[k] == best) rival = k;
        rival = least_of_warp(rival);
        if (lane == 0 && rival < columns) {
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

// moves[counter] += the moves that each counter makes in these rows. One thread block a counter: one for each column; with
// `joint` a single one, whose moves stand in the columns of their labels.
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
    const REAL *scores, const Example *examples, int rows, int columns, int pitch, int64 position, Counts *counts
) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) return;
    const REAL *mine = scores + (int64)row * pitch;
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

// weights[column] += Σ τ·row, in the order of the rows, and drift[column] += Σ clock·τ·row; tau becomes 0 again. One thread
// block a column. τ is divided by `moves` (for the mean of a batch; null: the sum); `clocks` is 1 where the clock goes on
// with each row, 0 for a batch.
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
