# What packages/redraft-llama changes in llama.cpp: the kernels (kernels.cmake), and how threads wait without OpenMP.
#
# llama.cpp's own barrier spins until the last thread arrives.  If that thread has no core, because another process or a
# spinning thread occupies it, a pass takes seconds.  With this, a thread sleeps after some spins, as OpenMP's do
# (redraft.backends), and the last one wakes those that sleep.  How many spins depends on the waits before: their number
# shrinks with each wait that ended in sleep, and grows with each that did not.  So threads that share a core sleep almost
# at once, and threads with a core each do not sleep between operations.
#
# Processors with AVX and without AVX2, of 2011 to 2014, run the code for SSE 4.2: with that for AVX, the rows of a pass
# are not bit for bit those of single passes, as `exact` promises (tests/backends/test_llamacpp.py).  Processors with
# AMX, which kernels.cmake leaves out, run the code for Zen 4.

include("${CMAKE_CURRENT_LIST_DIR}/kernels.cmake")
if(NOT REDRAFT_KERNELS)
    return()
endif()

_open("ggml-cpu.c" "redraft_patience")
if(_new)
    _replace([=[struct ggml_threadpool {
]=] [=[// spins of a thread that waits for others, before it sleeps
#define REDRAFT_LEAST_PATIENCE 100
#define REDRAFT_MOST_PATIENCE 10000
static atomic_int redraft_patience = REDRAFT_MOST_PATIENCE;

struct ggml_threadpool {
]=])
    _replace([=[    atomic_int GGML_CACHE_ALIGN n_barrier_passed;
]=] [=[    atomic_int GGML_CACHE_ALIGN n_barrier_passed;
    atomic_int n_sleeping;    // threads that wait for `cond` at a barrier
]=])
    _replace([=[    threadpool->n_barrier_passed = 0;
]=] [=[    threadpool->n_barrier_passed = 0;
        threadpool->n_sleeping       = 0;
]=])
    _replace([=[        atomic_fetch_add_explicit(&tp->n_barrier_passed, 1, memory_order_seq_cst);
]=] [=[        atomic_fetch_add_explicit(&tp->n_barrier_passed, 1, memory_order_seq_cst);
        // either this sees the sleeper, or the sleeper sees the new number before it sleeps
        if (atomic_load_explicit(&tp->n_sleeping, memory_order_seq_cst) > 0) {
            ggml_mutex_lock(&tp->mutex);
            ggml_mutex_unlock(&tp->mutex);
            ggml_cond_broadcast(&tp->cond);
        }
]=])
    _replace([=[    while (atomic_load_explicit(&tp->n_barrier_passed, memory_order_relaxed) == n_passed) {
        ggml_thread_cpu_relax();
    }]=] [=[    const int patience = atomic_load_explicit(&redraft_patience, memory_order_relaxed);
    int spins = 0;
    while (spins < patience && atomic_load_explicit(&tp->n_barrier_passed, memory_order_relaxed) == n_passed) {
        ggml_thread_cpu_relax();
        spins++;
    }
    if (spins < patience) {
        if (patience < REDRAFT_MOST_PATIENCE) {
            atomic_store_explicit(&redraft_patience, patience + patience / 4, memory_order_relaxed);
        }
    } else {
        if (patience > REDRAFT_LEAST_PATIENCE) {
            atomic_store_explicit(&redraft_patience, patience - patience / 4, memory_order_relaxed);
        }
        ggml_mutex_lock(&tp->mutex);
        atomic_fetch_add_explicit(&tp->n_sleeping, 1, memory_order_seq_cst);
        while (atomic_load_explicit(&tp->n_barrier_passed, memory_order_seq_cst) == n_passed) {
            ggml_cond_wait(&tp->cond, &tp->mutex);
        }
        atomic_fetch_sub_explicit(&tp->n_sleeping, 1, memory_order_seq_cst);
        ggml_mutex_unlock(&tp->mutex);
    }]=])
    _replace([=[    const uint64_t n_rounds = 1024UL * 128 * threadpool->poll;
]=] [=[    const uint64_t n_rounds = threadpool->poll ? atomic_load_explicit(&redraft_patience, memory_order_relaxed) : 0;
]=])
    _close()
endif()

_open("../CMakeLists.txt" "REDRAFT_PORTABLE")
if(_new)
    _replace([=[        ggml_add_cpu_backend_variant(sandybridge        SSE42 AVX)
]=] [=[        # REDRAFT_PORTABLE: no variant with AVX alone
]=])
    _replace([=[            ggml_add_cpu_backend_variant(ivybridge      SSE42 AVX F16C)
            ggml_add_cpu_backend_variant(piledriver     SSE42 AVX F16C FMA)
]=] "")
    _replace([=[            ggml_add_cpu_backend_variant(sapphirerapids SSE42 AVX F16C FMA AVX2 BMI2 AVX512 AVX512_VBMI AVX512_VNNI AVX512_BF16 AMX_TILE AMX_INT8)
]=] "")
    _close()
endif()
