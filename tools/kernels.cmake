# Give llama.cpp's processor backend (ggml-cpu) faster kernels for short passes.
#
#   CMAKE_ARGS="-DCMAKE_PROJECT_llama_cpp_INCLUDE=$PWD/tools/kernels.cmake" pip install --no-cache-dir .
#
# CMake runs this file after the `project` command of llama-cpp-python.  Q8_0 and Q5_0 get the kernel in q8_rows.h, and
# attention the one in attention_rows.h, if the processor has AVX2.  Tiles of float matrices fetch the next one in
# advance: a tile reads four rows of the weights at once, and hardware prefetchers do not follow four streams as short
# as the rows of a small model.  If a file has changed in llama.cpp, it keeps its own kernels.

set(_folder "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp/ggml/src/ggml-cpu")

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

# Read `_source` from a file that does not have the kernel yet; `_new` says whether there is one.
macro(_open name kernel)
    set(_file "${_folder}/${name}")
    set(_problem "")
    set(_source "")
    set(_new OFF)
    if(EXISTS "${_file}")
        file(READ "${_file}" _source)
    endif()
    string(FIND "${_source}" "${kernel}" _done)
    if(_done EQUAL -1)
        set(_new ON)
    endif()
endmacro()

# Write `_source` and the kernel's file beside it.
macro(_close kernel)
    if(_problem STREQUAL "")
        get_filename_component(_beside "${_file}" DIRECTORY)
        file(COPY "${CMAKE_CURRENT_LIST_DIR}/${kernel}.h" DESTINATION "${_beside}")
        file(WRITE "${_file}" "${_source}")
        message(STATUS "llama.cpp gets ${kernel}.h")
    else()
        message(WARNING "llama.cpp does not get ${kernel}.h: ${_file} has no such lines once:\n${_problem}")
    endif()
endmacro()

_open("llamafile/sgemm.cpp" "q8_rows")
if(_new)
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

    _close("q8_rows")
endif()

_open("ops.cpp" "attention_rows")
if(_new)
    _replace([=[static void ggml_compute_forward_flash_attn_ext_f16(
]=] [=[#include "attention_rows.h"

static void ggml_compute_forward_flash_attn_ext_f16(
]=])
    _replace([=[    const bool kv_is_f32_or_f16 = (k->type]=] [=[#if defined(ATTENTION_ROWS)
    if (!use_ref && attention_rows(params, dst)) {
        return;
    }
#endif

    const bool kv_is_f32_or_f16 = (k->type]=])
    _close("attention_rows")
endif()
