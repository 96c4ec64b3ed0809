# Give llama.cpp's matrix products (ggml-cpu/llamafile/sgemm.cpp) faster kernels for short passes.
#
#   CMAKE_ARGS="-DCMAKE_PROJECT_llama_cpp_INCLUDE=$PWD/tools/kernels.cmake" pip install --no-cache-dir .
#
# CMake runs this file after the `project` command of llama-cpp-python.  Q8_0 and Q5_0 get the kernel in q8_rows.h, if
# the processor has AVX2.  Tiles of float matrices fetch the next one in advance: a tile reads four rows of the weights at
# once, and hardware prefetchers do not follow four streams as short as the rows of a small model.  If the source has
# changed, llama.cpp is built without this.

set(_file "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp/ggml/src/ggml-cpu/llamafile/sgemm.cpp")
set(_problem "")

# Replace a text that occurs once in the source.
function(_replace old new)
    string(FIND "${_source}" "${old}" _first)
    string(FIND "${_source}" "${old}" _last REVERSE)
    if(_first EQUAL -1 OR NOT _first EQUAL _last)
        set(_problem "${old}" PARENT_SCOPE)
    else()
        string(REPLACE "${old}" "${new}" _source "${_source}")
        set(_source "${_source}" PARENT_SCOPE)
    endif()
endfunction()

if(EXISTS "${_file}")
    file(READ "${_file}" _source)
else()
    set(_source "")
endif()

string(FIND "${_source}" "q8_rows" _done)
if(_done EQUAL -1)
    _replace([=[template <int M>
static inline int64_t BLOCK_SIZE(size_t m) {]=] [=[// Fetch the next tile's rows, and advance.
template <int SIZE>
static inline void prefetch(const char *& next) {
#if defined(__GNUC__)
    for (int i = 0; i < SIZE; i += 64) {
        __builtin_prefetch(next + i);
    }
#endif
    next += SIZE;
}

template <int M>
static inline int64_t BLOCK_SIZE(size_t m) {]=])

    # floats
    _replace([=[        D Cv[RN][RM] = {};
        for (int64_t l = 0; l < k; l += KN) {
            // help compiler]=] [=[        D Cv[RN][RM] = {};
        const char * next = (const char *) (A + lda * (ii + RM));
        for (int64_t l = 0; l < k; l += KN) {
            prefetch<RM * KN * sizeof(TA)>(next);
            // help compiler]=])

    # Q8_0 and Q5_0, also for a single token
    _replace([=[bool llamafile_sgemm(const struct ggml_compute_params * params, int64_t m,]=] [=[#include "q8_rows.h"

bool llamafile_sgemm(const struct ggml_compute_params * params, int64_t m,]=])
    _replace([=[#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=] [=[#if defined(Q8_ROWS)
    if (Btype == GGML_TYPE_Q8_0 && Ctype == GGML_TYPE_F32) {
        const auto product = [&](auto * rows) {
            q8_rows(m, n, k, rows, lda, (const block_q8_0 *) B, ldb, (float *) C, ldc, params->ith, params->nth);
            return true;
        };
        if (Atype == GGML_TYPE_Q8_0)
            return product((const block_q8_0 *) A);
        if (Atype == GGML_TYPE_Q5_0)
            return product((const block_q5_0 *) A);
    }
#endif
#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=])

    if(_problem STREQUAL "")
        get_filename_component(_folder "${_file}" DIRECTORY)
        file(COPY "${CMAKE_CURRENT_LIST_DIR}/q8_rows.h" DESTINATION "${_folder}")
        file(WRITE "${_file}" "${_source}")
        message(STATUS "llama.cpp gets kernels for short passes")
    else()
        message(WARNING "llama.cpp keeps its own kernels: sgemm.cpp has no such lines once:\n${_problem}")
    endif()
endif()
