// Panels of rows whose scores and Gram matrix are matrix products made before: one decision among all classes, and what a cluster
// cannot hold. The kernels here decide, and note each move as tau[column][row of the panel], 0 where there is none; `apply_moves` then
// adds the rows to the weights and sets tau to 0 again.
//
// scores is [row of the panel][class]; gram is [row][row], symmetric.

#define WARPS 32

struct Chosen {
    double tau;
    int label;
    int rival;
    int row;  // of the panel
    int pad;
};

// One decision among all classes. A warp takes a row, 32 rows at a time; lane l alone reads and writes the classes l, l + 32, ….
extern "C" __global__ void __launch_bounds__(1024, 1) decide_jointly(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int panel, int classes, int64 position,
    const double *rule, double *tau, int64 *tallies, Chosen *moves, Counts *counts
) {
    __shared__ Chosen chosen[WARPS];
    __shared__ int moving[2][WARPS];
    __shared__ int wrong;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int64 tally = tallies[0];
    int made = 0;  // moves of this panel so far
    if (threadIdx.x == 0) wrong = 0;
    for (int first = 0; first < rows; first += WARPS) {
        const int row = first + warp;
        const bool live = row < rows;
        const Example example = examples[live ? row : 0];
        REAL *mine = scores + (int64)(live ? row : 0) * classes;
        const REAL *products = gram + (int64)(live ? row : 0) * panel;
        const REAL product = live && first + lane < rows ? products[first + lane] : (REAL)0;
        double m = 0.0, by = 0.0;
        REAL own = 0, best = 0;
        int rival = -1;

        auto find_rival = [&]() {  // the highest score of another class; of equal ones the lowest class
            rival = -1;
            for (int k = lane; k < classes; k += 32)
                if (k != example.label && (rival < 0 || mine[k] > best)) rival = k, best = mine[k];
#pragma unroll
            for (int distance = 16; distance > 0; distance >>= 1) {
                const REAL value = __shfl_xor_sync(WHOLE_WARP, best, distance);
                const int other = __shfl_xor_sync(WHOLE_WARP, rival, distance);
                if (other >= 0 && (rival < 0 || value > best || (value == best && other < rival))) rival = other, best = value;
            }
        };
        auto decide = [&]() {
            m = rival < 0 ? INFINITE : (double)own - (double)best;
            by = rival < 0 ? 0.0
                           : example.weight * example.of_class *
                                 step(rule, m, 2.0 * example.length, (double)(tally + 1), true);
        };
        auto change = [&](int column, REAL add) {  // of the score of a class; its new value
            REAL value = 0;
            if (lane == (column & 31)) {
                value = mine[column] + add;
                mine[column] = value;
            }
            return __shfl_sync(WHOLE_WARP, value, column & 31);
        };

        if (live) {
            for (int q = 0; q < made; q += 32) {  // what earlier moves of this panel have changed
                Chosen move = {0.0, 0, 0, 0, 0};
                REAL add = 0;
                if (q + lane < made) {
                    move = moves[q + lane];
                    add = (REAL)move.tau * products[move.row];
                }
                const int some = min(32, made - q);
                for (int e = 0; e < some; e++) {
                    const int gains = __shfl_sync(WHOLE_WARP, move.label, e), loses = __shfl_sync(WHOLE_WARP, move.rival, e);
                    const REAL value = __shfl_sync(WHOLE_WARP, add, e);
                    if (lane == (gains & 31)) mine[gains] += value;
                    if (lane == (loses & 31)) mine[loses] -= value;
                }
            }
            find_rival();
            own = __shfl_sync(WHOLE_WARP, mine[lane == (example.label & 31) ? example.label : min(lane, classes - 1)],
                              example.label & 31);
            decide();
            if (lane == 0) chosen[warp] = Chosen{by, example.label, rival, row, 0};
        }
        if (lane == 0) moving[0][warp] = live && by != 0.0;
        __syncthreads();
        int next = 0, turn = 0;
        while (true) {
            const unsigned all = __ballot_sync(WHOLE_WARP, moving[turn][lane] != 0 && lane >= next);
            if (!all) break;
            const int i = __ffs(all) - 1;
            const Chosen move = chosen[i];
            if (threadIdx.x == 0) {
                moves[made] = move;
                tau[(int64)move.label * panel + first + i] = move.tau;
                tau[(int64)move.rival * panel + first + i] = -move.tau;
            }
            made++;
            tally++;
            next = i + 1;
            if (live && warp > i) {
                const REAL add = (REAL)move.tau * __shfl_sync(WHOLE_WARP, product, i);
                const REAL gained = change(move.label, add), lost = change(move.rival, -add);
                if (move.label == example.label) own = gained;
                if (move.rival == example.label) own = lost;
                if ((rival == move.label && !(gained >= best)) || (rival == move.rival && !(lost >= best)))
                    find_rival();
                else {
                    if (rival == move.label) best = gained;
                    if (rival == move.rival) best = lost;
                    if (move.label != example.label && (gained > best || (gained == best && move.label < rival)))
                        rival = move.label, best = gained;
                    if (move.rival != example.label && (lost > best || (lost == best && move.rival < rival)))
                        rival = move.rival, best = lost;
                }
                decide();
                if (lane == 0) chosen[warp] = Chosen{by, example.label, rival, row, 0};
            }
            if (lane == 0) moving[turn ^ 1][warp] = live && warp > i && by != 0.0;
            turn ^= 1;
            __syncthreads();
        }
        if (live && lane == 0) {
            if (!is_number(own) || (rival >= 0 && !is_number(best))) note_broken(counts, position + row);
            if (!(m > 0.0)) atomicAdd(&wrong, 1);
        }
        __syncthreads();  // before `moving` is written again; and the moves are there for all
    }
    if (threadIdx.x == 0) {
        tallies[0] = tally;
        counts->mistakes += wrong;
        counts->updates += made;
    }
}

// Two classes, or each class against the rest: one warp a weight vector. Scores are brought up to date in place.
extern "C" __global__ void decide_columns(
    REAL *scores, const REAL *gram, const Example *examples, int rows, int panel, int columns, int64 position,
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
            const REAL *products = gram + (int64)(first + i) * panel;
            if (live && lane > i) score = fma((REAL)by, products[row], score);
            for (int later = row + 32; later < rows; later += 32)
                scores[(int64)later * columns + column] =
                    fma((REAL)by, products[later], scores[(int64)later * columns + column]);
            if (lane == 0) tau[(int64)column * panel + first + i] = by;
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
    const REAL *scores, const Example *examples, int rows, int panel, int columns, int joint, const double *rule, double *tau,
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
#pragma unroll
        for (int distance = 16; distance > 0; distance >>= 1) {
            const REAL value = __shfl_xor_sync(WHOLE_WARP, best, distance);
            const int other = __shfl_xor_sync(WHOLE_WARP, rival, distance);
            if (other >= 0 && (rival < 0 || value > best || (value == best && other < rival))) rival = other, best = value;
        }
        if (lane == 0 && rival >= 0) {
            const double m = (double)mine[example.label] - (double)best;
            const double by = example.weight * example.of_class *
                              step(rule, m, 2.0 * example.length, (double)(tallies[0] + 1), true);
            tau[(int64)example.label * panel + row] = by;
            tau[(int64)rival * panel + row] = -by;
        }
        return;
    }
    for (int k = lane; k < columns; k += 32) {
        const bool positive = example.label == (columns == 1 ? 1 : k);
        const double sign = positive ? 1.0 : -1.0;
        const double share = positive || columns == 1 ? example.weight * example.of_class : example.weight;
        tau[(int64)k * panel + row] =
            sign * share * step(rule, sign * (double)mine[k], example.length, (double)(tallies[k] + 1), positive);
    }
}

// moves[counter] += the moves that each counter makes in these rows. One thread block a counter; `joint` has one counter, whose moves
// stand in the columns of their labels.
extern "C" __global__ void count_moves(
    const double *tau, const Example *examples, int rows, int panel, int joint, double *moves
) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int mine = 0;
    for (int row = threadIdx.x; row < rows; row += blockDim.x)
        mine += tau[(int64)(joint ? examples[row].label : blockIdx.x) * panel + row] != 0.0;
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
    const REAL *packed, double *tau, int rows, int panel, int width, REAL *weights, double *drift, const double *moves,
    int joint, int64 clock, int clocks
) {
    extern __shared__ __align__(16) unsigned char memory[];
    double *by = (double *)memory;  // [panel]
    int *row = (int *)(by + panel);  // [panel]
    __shared__ int found;
    double *of_column = tau + (int64)blockIdx.x * panel;
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        const double parts = moves ? moves[joint ? 0 : blockIdx.x] : 1.0;
        int so_far = 0;
        for (int first = 0; first < rows; first += 32) {
            const double value = first + lane < rows ? of_column[first + lane] : 0.0;
            const unsigned all = __ballot_sync(WHOLE_WARP, value != 0.0);
            if (value != 0.0) {
                const int at = so_far + __popc(all & ((1u << lane) - 1));
                by[at] = value / parts;
                row[at] = first + lane;
                of_column[first + lane] = 0.0;
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
