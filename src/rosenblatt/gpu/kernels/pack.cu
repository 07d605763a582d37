// Rows in the order of their visit, as the other kernels read them.
//
// A packed chunk is [block][slice][row of the block][width]: the features of a row, the constant last, are cut into
// `slices` slices of `width` numbers, one for each thread block of a cluster, and padded with zeros. With one slice it is
// a matrix of padded rows.

struct Half {
    unsigned short bits;
};
struct BrainHalf {  // bfloat16: the upper half of a float
    unsigned short bits;
};

__device__ __forceinline__ float as_real(float value) { return value; }
__device__ __forceinline__ double as_real(double value) { return value; }
__device__ __forceinline__ float as_real(Half value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
__device__ __forceinline__ float as_real(BrainHalf value) { return __uint_as_float((unsigned)value.bits << 16); }

template <typename VALUE> __device__ __forceinline__ Vector as_vector(const VALUE *from, bool aligned) {
    Vector result;
    if (aligned && sizeof(VALUE) == sizeof(REAL)) return *(const Vector *)from;
#pragma unroll
    for (int u = 0; u < UNITS; u++) result.at[u] = as_real(from[u]);
    return result;
}

// One warp packs one row. `order` lists the rows of the data (null: in the order in which they are stored). With
// `gathered`, the values are in that order already, and only labels and weights are looked up by it.
template <typename VALUE>
__device__ __forceinline__ void pack_rows(
    const VALUE *values, int64 stride, int features, double constant, const int64 *order, int gathered, const int *labels,
    const double *weights, int64 rows, int64 padded, int block, int slices, int width, REAL *packed, Example *examples
) {
    const int lane = threadIdx.x & 31;
    const bool aligned = ((uint64)values | (uint64)stride * sizeof(VALUE)) % 16 == 0;
    const int64 warps = (int64)gridDim.x * (blockDim.x >> 5);
    for (int64 at = (int64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); at < padded; at += warps) {
        const int64 number = at / block, place = at % block;
        const int64 row = at < rows ? (order ? order[at] : at) : -1;
        const VALUE *of_row = values + (gathered ? at : row) * stride;
        double length = 0.0;
#pragma unroll 4
        for (int vector = lane; vector < slices * width / UNITS; vector += 32) {
            const int first = vector * UNITS, slice = first / width;
            Vector value;
            if (row >= 0 && first + UNITS <= features)
                value = as_vector(of_row + first, aligned);
            else
#pragma unroll
                for (int u = 0; u < UNITS; u++) {
                    value.at[u] = 0;
                    if (row >= 0 && first + u < features) value.at[u] = as_real(of_row[first + u]);
                    if (row >= 0 && first + u == features) value.at[u] = (REAL)constant;
                }
            *(Vector *)(packed + ((number * slices + slice) * block + place) * width + first - slice * width) = value;
#pragma unroll
            for (int u = 0; u < UNITS; u++)
                if (first + u < features) length += (double)value.at[u] * (double)value.at[u];
        }
        for (int distance = 16; distance > 0; distance >>= 1) length += __shfl_xor_sync(WHOLE_WARP, length, distance);
        if (lane == 0) {
            Example example;
            example.label = row >= 0 ? labels[row] : 0;
            example.pad = 0;
            example.length = length + constant * constant;
            example.weight = row >= 0 && weights ? weights[2 * row] : 1.0;
            example.of_class = row >= 0 && weights ? weights[2 * row + 1] : 1.0;
            examples[at] = example;
        }
    }
}

#define PACK(NAME, VALUE)                                                                                                \
    extern "C" __global__ void NAME(                                                                                     \
        const VALUE *values, int64 stride, int features, double constant, const int64 *order, int gathered,              \
        const int *labels, const double *weights, int64 rows, int64 padded, int block, int slices, int width,            \
        REAL *packed, Example *examples                                                                                  \
    ) {                                                                                                                  \
        pack_rows(values, stride, features, constant, order, gathered, labels, weights, rows, padded, block, slices,     \
                  width, packed, examples);                                                                              \
    }

PACK(pack_float32, float)
PACK(pack_float64, double)
PACK(pack_float16, Half)
PACK(pack_bfloat16, BrainHalf)
