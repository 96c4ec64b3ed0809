# Give llama.cpp's processor backend (ggml-cpu) faster kernels for short passes.
#
#   CMAKE_ARGS="-DCMAKE_PROJECT_llama_cpp_INCLUDE=$PWD/native/llama.cpp/kernels.cmake" pip install --no-cache-dir .
#
# CMake runs this file after the `project` command of llama-cpp-python.  If the processor has AVX2, Q8_0 and Q5_0 get
# the kernel in q8_rows.h, Q4_K and Q6_K the one in k_rows.h, and attention the one in attention_rows.h.  Tiles of
# float matrices fetch the next one in advance: a tile reads four rows of the weights at once, and hardware
# prefetchers do not follow four streams as short as the rows of a small model.
#
# llama.cpp's kernels for AMX are left out: with ours, rows do not depend on the pass that they are in, and passes are
# as short for most formats and sizes (docs/benchmarks/kernels.md).
#
# What llama.cpp's own programs share (llama-common) is not built: Redraft needs libllama alone.
#
# The library carries a mark, a digest of these files, among the features that it reports (`redraft doctor`).  If
# llama.cpp's source has changed where a kernel goes, the build ends; -DREDRAFT_KERNELS=OFF builds without kernels.

option(REDRAFT_KERNELS "Give llama.cpp the kernels of Redraft" ON)
if(NOT REDRAFT_KERNELS)
    message(STATUS "llama.cpp keeps its own kernels")
    return()
endif()

# llama-cpp-python sets it in the cache, which comes after this.
set(LLAMA_BUILD_COMMON OFF)

set(_folder "${CMAKE_CURRENT_SOURCE_DIR}/vendor/llama.cpp/ggml/src/ggml-cpu")

# The same as in tools/setup_env.py.
set(_digests "")
foreach(_name kernels.cmake q8_rows.h k_rows.h attention_rows.h)
    file(SHA256 "${CMAKE_CURRENT_LIST_DIR}/${_name}" _digest)
    string(APPEND _digests "${_digest}")
endforeach()
string(SHA256 _mark "${_digests}")
string(SUBSTRING "${_mark}" 0 8 _mark)

# Replace a text that occurs once in the source.
function(_replace old new)
    string(FIND "${_source}" "${old}" _first)
    string(FIND "${_source}" "${old}" _last REVERSE)
    if(_first EQUAL -1 OR NOT _first EQUAL _last)
        message(FATAL_ERROR "Redraft's kernels do not fit this version of llama.cpp, whose ${_file} does not have "
            "these lines once (CMAKE_ARGS=-DREDRAFT_KERNELS=OFF builds without the kernels):\n${old}")
    endif()
    string(REPLACE "${old}" "${new}" _source "${_source}")
    set(_source "${_source}" PARENT_SCOPE)
endfunction()

# Read `_source` from a file that does not have the kernel yet; `_new` says whether there is one.
macro(_open name kernel)
    set(_file "${_folder}/${name}")
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

# Write `_source`, and the kernels' files beside it.
macro(_close)
    get_filename_component(_beside "${_file}" DIRECTORY)
    foreach(_kernel ${ARGN})
        file(COPY "${CMAKE_CURRENT_LIST_DIR}/${_kernel}.h" DESTINATION "${_beside}")
    endforeach()
    file(WRITE "${_file}" "${_source}")
    message(STATUS "llama.cpp gets faster kernels in ${_file}")
endmacro()

_open("llamafile/sgemm.cpp" "k_rows")
if(_new)
    _replace([=[#include "ggml-quants.h"
]=] [=[#include "ggml-quants.h"
#include "k_rows.h"
]=])

    # floats
    _replace([=[        D Cv[RN][RM] = {};
        for (int64_t l = 0; l < k; l += KN) {
            // help compiler]=] [=[        D Cv[RN][RM] = {};
        const char * next = (const char *) (A + lda * (ii + RM));
        for (int64_t l = 0; l < k; l += KN) {
            prefetch<RM * KN * sizeof(TA)>(next);
            // help compiler]=])

    # also for a single token
    _replace([=[#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=] [=[#if defined(Q8_ROWS)
    if (Ctype == GGML_TYPE_F32) {
        const auto product = [&](auto block) {
            using Block = decltype(block);
            multiply_rows<Block>(m, n, k, (const typename Block::Row *) A, lda, (const typename Block::Column *) B, ldb,
                                 (float *) C, ldc, params->ith, params->nth);
            return true;
        };
        if (Atype == GGML_TYPE_Q8_0 && Btype == GGML_TYPE_Q8_0)
            return product(q8_block<block_q8_0>());
        if (Atype == GGML_TYPE_Q5_0 && Btype == GGML_TYPE_Q8_0)
            return product(q8_block<block_q5_0>());
        if (Atype == GGML_TYPE_Q4_K && Btype == GGML_TYPE_Q8_K && (n > 1 || k_alone()))
            return product(q4_k_rows());
        if (Atype == GGML_TYPE_Q6_K && Btype == GGML_TYPE_Q8_K && (n > 1 || k_alone()))
            return product(q6_k_rows());
    }
#endif
#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=])

    _close("q8_rows" "k_rows")
endif()

# Q4_K is repacked, and neither type is multiplied in llama.cpp's tiles.  Matrices of experts are multiplied as before.
_open("repack.cpp" "k_rows")
if(_new)
    _replace([=[#include "repack.h"
]=] [=[#include "repack.h"
#include "llamafile/k_rows.h"
]=])
    _replace([=[    void forward_mul_mat(ggml_compute_params * params, ggml_tensor * op) {
]=] [=[    void forward_mul_mat(ggml_compute_params * params, ggml_tensor * op) {
#if defined(Q8_ROWS)
        if constexpr (std::is_same_v<BLOC_TYPE, block_q4_K> && INTER_SIZE == 8) {
            if (op->src[1]->ne[1] > 1 || k_alone()) {
                multiply_repacked(params, op);
                return;
            }
        }
#endif
]=])
    _close()
endif()

_open("tiled/tiled.cpp" "k_rows")
if(_new)
    _replace([=[    // Supported quant types for src0
]=] [=[#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
    if ((src0->type == GGML_TYPE_Q4_K || src0->type == GGML_TYPE_Q6_K) && ggml_n_dims(src0) < 3) {
        return false;  // see k_rows.h
    }
#endif
    // Supported quant types for src0
]=])
    _close()
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

_open("ggml-cpu.cpp" "REDRAFT_KERNELS")
if(_new)
    _replace([=[        if (ggml_backend_amx_buffer_type()) {
            bufts.push_back(ggml_backend_amx_buffer_type());
        }
]=] "")
    _replace([=[        if (ggml_cpu_has_amx_int8()) {
            features.push_back({ "AMX_INT8", "1" });
        }
]=] "")
    _replace([=[        std::vector<ggml_backend_feature> features;
]=] "        std::vector<ggml_backend_feature> features;
        features.push_back({ \"REDRAFT_KERNELS\", \"${_mark}\" });
")
    _close()
endif()
