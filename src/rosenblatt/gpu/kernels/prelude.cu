// What all kernels share. rosenblatt.gpu.sources puts a source together in this order: constants (REAL, the type of
// weights and sums, float or double; UNITS, how many of them are 16 bytes; FIELDS, the fields of the rule; those that a
// file of kernels asks for, such as BLOCK), this file, `step`, which rosenblatt.gpu.translation makes from the Python
// source of the rule, and the file of kernels.
//
// Positions count the examples of an epoch in the order of their visit; rows of a chunk are stored in that order (`pack.cu`).

typedef long long int64;
typedef unsigned long long uint64;

struct Example {  // what the rule needs to know of an example besides its row
    int label;
    int pad;
    double length;  // squared, with the constant feature
    double weight;  // of the example
    double of_class;  // the weight of its class
};

struct alignas(16) Vector {
    REAL at[UNITS];
};

struct Counts {  // what an epoch has done so far
    int64 mistakes;
    int64 updates;
    int64 broken;  // the first position whose score is not a number; NO_POSITION if there is none
};

#define NO_POSITION 0x7fffffffffffffffLL
#define WHOLE_WARP 0xffffffffu
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

__device__ __forceinline__ bool is_number(float x) { return fabsf(x) <= 3.402823466e38f; }
__device__ __forceinline__ bool is_number(double x) { return fabs(x) <= 1.7976931348623157e308; }

__device__ __forceinline__ void note_broken(Counts *counts, int64 position) {
    atomicMin((unsigned long long *)&counts->broken, (unsigned long long)position);
}

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

#ifdef COPIERS
// Asynchronous copies from global to shared memory, in units of 16 bytes; threads go on working meanwhile. An Arrival is
// an mbarrier: a round of it is complete when as many bytes are there as were announced. Cards before compute capability
// 9.0 have none: every thread copies a part and waits for its own copies, and a barrier must follow.
struct Arrival {
    uint64 state;
};

__device__ __forceinline__ void set_up(Arrival *arrival) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(arrival)) : "memory");
#endif
}

__device__ __forceinline__ void publish_set_up() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

#define COPIER 32  // the thread that asks for copies on cards that have Arrivals: not the first, whose warp has other work

// All threads that copy call it, with the same arguments.
__device__ __forceinline__ void copy(void *to, const void *from, unsigned bytes, Arrival *arrival) {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == COPIER)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(to)),
                     "l"(from), "r"(bytes), "r"(shared_address(arrival))
                     : "memory");
#else
    for (unsigned i = threadIdx.x; i < bytes / 16; i += COPIERS)
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address((int4 *)to + i)),
                     "l"((const int4 *)from + i)
                     : "memory");
#else
        ((int4 *)to)[i] = ((const int4 *)from)[i];
#endif
#endif
}

__device__ __forceinline__ void announce(Arrival *arrival, unsigned bytes) {  // by one thread
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(arrival)), "r"(bytes) : "memory");
#endif
}

__device__ __forceinline__ void end_copies(Arrival *arrival, unsigned bytes) {
    if (threadIdx.x == COPIER) announce(arrival, bytes);
}

__device__ __forceinline__ void await(Arrival *arrival, int64 round) {  // the rounds of an Arrival count from 0
#if __CUDA_ARCH__ >= 900
    unsigned here = 0;
    while (!here)
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
            : "=r"(here)
            : "r"(shared_address(arrival)), "r"((unsigned)(round & 1))
            : "memory");
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif

// Of the Gram matrix of a block the rows of group g, 32 each, are kept from column 32·g on, for a row changes the scores
// of later rows only.
#ifdef BLOCK
#define GROUPS ((BLOCK + 31) / 32)
__host__ __device__ constexpr int first_of_group(int group) { return 32 * group * BLOCK - 512 * group * (group - 1); }
#define GRAM_SIZE (BLOCK <= 32 ? BLOCK * BLOCK : first_of_group(GROUPS))
__device__ __forceinline__ int place_in_gram(int row, int column) {
    const int first = row & ~31;
    return first_of_group(row / 32) + (row - first) * (BLOCK - first) + column - first;
}
#endif
