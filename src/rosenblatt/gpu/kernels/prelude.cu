// What all kernels share. Before this file the compiler is given: REAL, the type of weights and sums (float or double); UNITS, how many
// of them are 16 bytes; and `step`, the rule, made from its Python source by rosenblatt.gpu.translation.
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

__device__ __forceinline__ bool is_number(REAL x) { return fabs((double)x) <= 1.7976931348623157e308; }

__device__ __forceinline__ void note_broken(Counts *counts, int64 position) {
    atomicMin((unsigned long long *)&counts->broken, (unsigned long long)position);
}

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// Copies of 16 bytes from the card's memory to that of a multiprocessor, which go on while threads work.
__device__ __forceinline__ void copy_async(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
    *(int4 *)to = *(const int4 *)from;
#endif
}

__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int LEFT> __device__ __forceinline__ void wait_for_copies() {  // until at most LEFT groups are on their way
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}
