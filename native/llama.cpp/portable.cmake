# What packages/redraft-llama changes in llama.cpp: the kernels (kernels.cmake), and how threads wait without OpenMP.
#
# llama.cpp's own barrier spins until the last thread arrives.  If another process occupies the core of that thread, the
# others keep spinning instead of giving theirs up, and a pass takes seconds.  With this, a thread sleeps after some
# spins, as OpenMP's do (redraft.backends), and the last one wakes those that sleep.
#
# Processors with AVX and without AVX2, of 2011 to 2014, run the code for SSE 4.2: with that for AVX, the rows of a pass
# are not bit for bit those of single passes, as `exact` promises (tests/backends/test_llamacpp.py).

include("${CMAKE_CURRENT_LIST_DIR}/kernels.cmake")
if(NOT REDRAFT_KERNELS)
    return()
endif()

_open("ggml-cpu.c" "n_sleeping")
if(_new)
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
            ggml_cond_broadcast(&tp->cond);
            ggml_mutex_unlock(&tp->mutex);
        }
]=])
    _replace([=[    while (atomic_load_explicit(&tp->n_barrier_passed, memory_order_relaxed) == n_passed) {
        ggml_thread_cpu_relax();
    }]=] [=[    for (int spins = 0; atomic_load_explicit(&tp->n_barrier_passed, memory_order_relaxed) == n_passed; spins++) {
        if (spins < 10000) {
            ggml_thread_cpu_relax();
            continue;
        }
        ggml_mutex_lock(&tp->mutex);
        atomic_fetch_add_explicit(&tp->n_sleeping, 1, memory_order_seq_cst);
        while (atomic_load_explicit(&tp->n_barrier_passed, memory_order_seq_cst) == n_passed) {
            ggml_cond_wait(&tp->cond, &tp->mutex);
        }
        atomic_fetch_sub_explicit(&tp->n_sleeping, 1, memory_order_seq_cst);
        ggml_mutex_unlock(&tp->mutex);
    }]=])
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
    _close()
endif()
