# Make llama.cpp's matrix kernels (ggml-cpu/llamafile/sgemm.cpp) fetch the weights of the next tile in advance.
#
#   CMAKE_ARGS="-DCMAKE_PROJECT_llama_cpp_INCLUDE=$PWD/tools/prefetch.cmake" pip install --no-cache-dir .
#
# CMake runs this file after the `project` command of llama-cpp-python.  A tile of these kernels reads four rows of the
# weights at once.  The rows of a small model have only half a kilobyte; hardware prefetchers do not follow four streams
# that short, so every tile waits for memory.  If the source has changed, llama.cpp is built without this.

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

string(FIND "${_source}" "prefetch<" _done)
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

    # Q8_0 and others with blocks of 32
    _replace([=[            __m256 Cv[RN][4] = {};
            for (int64_t l = 0; l < k; ++l) {
                uint64_t a_delta]=] [=[            __m256 Cv[RN][4] = {};
            const char * next = (const char *) (A + lda * (ii + 4));
            for (int64_t l = 0; l < k; ++l) {
                prefetch<4 * sizeof(TA)>(next);
                uint64_t a_delta]=])

    # With prefetching, tiles are faster than dot products even for a single token.
    _replace([=[#if !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=] [=[#if defined(__AVX2__) && defined(__F16C__)
    if (n < 2 && Atype != GGML_TYPE_Q8_0)
        return false;
#elif !defined(__MMA__)
    if (n < 2)
        return false;
#endif]=])

    if(_problem STREQUAL "")
        file(WRITE "${_file}" "${_source}")
        message(STATUS "kernels prefetch the next tile")
    else()
        message(WARNING "llama.cpp is built without prefetching: sgemm.cpp has no such lines once:\n${_problem}")
    endif()
endif()
