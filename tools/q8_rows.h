// Products of Q8_0 and Q5_0 matrices with AVX2, eight rows of the weights at a time.  tools/kernels.cmake adds this to
// llama.cpp.
//
// The lanes of a register are eight rows, so eight results share one conversion to float and one product of scales,
// where llamafile's tiles, whose lanes are parts of one row, spend them on each result.  Therefore rows are
// interleaved: four bytes of each, then the next four.  That is done once for all columns, while the first of them are
// multiplied, so that it takes no longer than fetching the rows from memory.  Sixteen rows, in the registers of
// AVX-512, took twice as long on Zen 4, and its instructions for eight are as fast.
//
// A result is the sum over blocks, in order, of an exact integer product times the product of both scales.  It does not
// depend on the other columns, so passes over one token and over many are bit-identical.

#pragma once

// Fetch the next tile's rows, and advance.
template <int SIZE>
static inline void prefetch(const char *& next) {
#if defined(__GNUC__)
    for (int i = 0; i < SIZE; i += 64) {
        __builtin_prefetch(next + i);
    }
#endif
    next += SIZE;
}

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define Q8_ROWS
#include "ggml-cpu-impl.h"
#include "simd-mappings.h"

#include <cstring>
#include <vector>

namespace {

// Q8_COLUMNS: columns whose sums fit into the registers.
#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
// One instruction multiplies unsigned bytes by signed ones and adds.  So 128 is added to the weights, and what that
// adds to a sum is taken from it first.
constexpr int Q8_COLUMNS = 8;

inline __m256i q8_weights(__m256i bytes) { return _mm256_xor_si256(bytes, _mm256_set1_epi8(-128)); }

inline __m256i q8_dot(__m256i sums, __m256i weights, __m256i four) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(sums, weights, four);
#else
    return _mm256_dpbusd_avx_epi32(sums, weights, four);
#endif
}

inline int32_t q8_begin(const int8_t * column) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
        sum += column[i];
    }
    return -128 * sum;
}
#else
constexpr int Q8_COLUMNS = 4;

inline __m256i q8_weights(__m256i bytes) { return bytes; }

inline __m256i q8_dot(__m256i sums, __m256i weights, __m256i four) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four, weights));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

inline int32_t q8_begin(const int8_t *) { return 0; }
#endif

// The weights of two rows: sixteen of each in `low`, the other sixteen in `high`.
inline void q8_read(const block_q8_0 & a, const block_q8_0 & b, __m256i & low, __m256i & high) {
    low = _mm256_set_m128i(_mm_loadu_si128((const __m128i *) b.qs), _mm_loadu_si128((const __m128i *) a.qs));
    high = _mm256_set_m128i(_mm_loadu_si128((const __m128i *) b.qs + 1), _mm_loadu_si128((const __m128i *) a.qs + 1));
}

inline __m256i q8_of(const block_q5_0 & row) {
    int32_t bits;
    memcpy(&bits, row.qh, sizeof(bits));
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i others = _mm256_set1_epi64x(0x7fbfdfeff7fbfdfe);  // all bits but one of each byte
    const __m256i spread = _mm256_or_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), bytes), others);
    const __m256i not_negative = _mm256_cmpeq_epi8(spread, _mm256_set1_epi8(-1));
    const __m128i nibbles = _mm_loadu_si128((const __m128i *) row.qs);
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(nibbles, 4), nibbles);
    return _mm256_or_si256(_mm256_and_si256(both, _mm256_set1_epi8(15)),
                           _mm256_andnot_si256(not_negative, _mm256_set1_epi8(-16)));
}

inline void q8_read(const block_q5_0 & a, const block_q5_0 & b, __m256i & low, __m256i & high) {
    const __m256i first = q8_of(a), second = q8_of(b);
    low = _mm256_permute2x128_si256(first, second, 0x20);
    high = _mm256_permute2x128_si256(first, second, 0x31);
}

// Let each register have four bytes of every row, given registers with sixteen bytes of two rows: i and i + 4.
inline void rows_transpose(const __m256i * rows, __m256i * fours) {
    const __m256i a = _mm256_unpacklo_epi32(rows[0], rows[1]), b = _mm256_unpackhi_epi32(rows[0], rows[1]);
    const __m256i c = _mm256_unpacklo_epi32(rows[2], rows[3]), d = _mm256_unpackhi_epi32(rows[2], rows[3]);
    fours[0] = _mm256_unpacklo_epi64(a, c);
    fours[1] = _mm256_unpackhi_epi64(a, c);
    fours[2] = _mm256_unpacklo_epi64(b, d);
    fours[3] = _mm256_unpackhi_epi64(b, d);
}

// A block of eight rows of Q8_0 or Q5_0.
template <typename BLOCK>
struct q8_block {
    using Row = BLOCK;
    using Column = block_q8_0;
    static constexpr int ROWS = 8;  // in so many of `Row`
    static constexpr int COLUMNS = Q8_COLUMNS;
    static constexpr int WORDS = 10;  // of a column: 32 bytes, the scale, and where sums begin

    __m256i weights[8];  // in each, four bytes of every row
    __m256 scales;

    // Read the block from rows that are `stride` blocks apart.
    void interleave(const BLOCK * A, int64_t stride) {
        __m256i low[4], high[4], t[4];
        for (int i = 0; i < 4; ++i) {
            q8_read(A[stride * i], A[stride * (i + 4)], low[i], high[i]);
        }
        rows_transpose(low, weights);
        rows_transpose(high, weights + 4);
        for (__m256i & four : weights) {
            four = q8_weights(four);
        }
        for (int i = 0; i < 4; ++i) {
            t[i] = _mm256_set_m128i(_mm_loadu_si128((const __m128i *) &A[stride * (i + 4)].d),
                                   _mm_loadu_si128((const __m128i *) &A[stride * i].d));
        }
        t[0] = _mm256_unpacklo_epi16(t[0], t[1]);
        t[2] = _mm256_unpacklo_epi16(t[2], t[3]);
        t[0] = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(t[0], t[2]), 8);
        scales = _mm256_cvtph_ps(_mm256_castsi256_si128(t[0]));
    }

    // Store a column as word `c` of every `width` words.
    static void read(const block_q8_0 & column, int32_t * to, int64_t width, int64_t c) {
        for (int s = 0; s < 8; ++s) {
            memcpy(to + width * s + c, column.qs + 4 * s, 4);
        }
        const float scale = GGML_CPU_FP16_TO_FP32(column.d);
        memcpy(to + width * 8 + c, &scale, 4);
        to[width * 9 + c] = q8_begin(column.qs);
    }

    // Add the products with N columns to `sums`.
    template <int N>
    void multiply(const int32_t * column, __m256 * sums) const {
        __m256i products[N];
        for (int c = 0; c < N; ++c) {
            products[c] = _mm256_set1_epi32(column[N * 9 + c]);
        }
        for (int s = 0; s < 8; ++s) {
            for (int c = 0; c < N; ++c) {
                products[c] = q8_dot(products[c], weights[s], _mm256_set1_epi32(column[N * s + c]));
            }
        }
        for (int c = 0; c < N; ++c) {
            float scale;
            memcpy(&scale, column + N * 8 + c, 4);
            const __m256 both = _mm256_mul_ps(scales, _mm256_set1_ps(scale));
            sums[c] = _mm256_fmadd_ps(both, _mm256_cvtepi32_ps(products[c]), sums[c]);
        }
    }
};

// A product C = A * B, in which row j of C has the products of all rows of A, of k blocks, with row j of B.  BLOCK has
// eight rows of A.
template <typename BLOCK>
struct rows_product {
    using Row = typename BLOCK::Row;
    static constexpr int WORDS = BLOCK::WORDS;

    int64_t m, n, k;
    const Row * A;
    int64_t lda;
    const typename BLOCK::Column * B;
    int64_t ldb;
    float * C;
    int64_t ldc;
    std::vector<BLOCK> & rows;       // k blocks of the present rows
    std::vector<int32_t> & columns;  // rows of B, see `read_columns`
    std::vector<Row> & last;         // the last rows of A, if they are fewer than eight; none of repacked ones is

    void multiply(int ith, int nth) {
        rows.resize(k);
        read_columns();
        const int64_t tiles = (m + 7) / 8, duty = (tiles + nth - 1) / nth;
        const int64_t end = MIN(duty * (ith + 1), tiles);
        for (int64_t tile = duty * ith; tile < end; ++tile) {
            const int count = (int) MIN(m - 8 * tile, (int64_t) 8);
            if (count == 8) {
                all_columns(A + lda * BLOCK::ROWS * tile, lda, 8 * tile, count);
            } else {
                last.resize(8 * k);
                for (int i = 0; i < 8; ++i) {
                    memcpy(&last[k * i], A + lda * (8 * tile + MIN(i, count - 1)), k * sizeof(Row));
                }
                all_columns(last.data(), k, 8 * tile, count);
            }
        }
    }

  private:
    int64_t groups() const { return (n + BLOCK::COLUMNS - 1) / BLOCK::COLUMNS; }

    // The first column of a group; groups have nearly the same size.
    int64_t first(int64_t group) const { return n * group / groups(); }

    // Store columns as they are multiplied: by group, then by block, then by word.
    void read_columns() {
        columns.resize(n * k * WORDS);
        for (int64_t g = 0; g < groups(); ++g) {
            const int64_t j = first(g), width = first(g + 1) - j;
            int32_t * to = columns.data() + WORDS * k * j;
            for (int64_t l = 0; l < k; ++l, to += WORDS * width) {
                for (int64_t c = 0; c < width; ++c) {
                    BLOCK::read(B[ldb * (j + c) + l], to, width, c);
                }
            }
        }
    }

    // Multiply eight rows, of which `count` count, by all columns.
    void all_columns(const Row * from, int64_t stride, int64_t i, int count) {
        for (int64_t g = 0; g < groups(); ++g) {
            const int64_t j = first(g);
            group<BLOCK::COLUMNS>(first(g + 1) - j, from, stride, i, j, count);
        }
    }

    // Multiply them by `width` columns, at most N.
    template <int N>
    void group(int64_t width, const Row * from, int64_t stride, int64_t i, int64_t j, int count) {
        if constexpr (N > 1) {
            if (width < N) {
                group<N - 1>(width, from, stride, i, j, count);
                return;
            }
        }
        j ? group<N, false>(from, stride, i, j, count) : group<N, true>(from, stride, i, j, count);
    }

    template <int N, bool FIRST>
    __attribute__((noinline)) void group(const Row * from, int64_t stride, int64_t i, int64_t j, int count) {
        const char * next = (const char *) (from + BLOCK::ROWS * stride);
        BLOCK * kept = rows.data();
        const int32_t * column = columns.data() + WORDS * k * j;
        const int64_t length = k;
        const bool only = N == n;
        __m256 sums[N] = {};
        for (int64_t l = 0; l < length; ++l, ++kept, column += WORDS * N) {
            if (FIRST) {
                prefetch<BLOCK::ROWS * sizeof(Row)>(next);
                if constexpr (sizeof(BLOCK) > 1024) {  // more than the registers
                    BLOCK & block = only ? rows[0] : *kept;
                    block.interleave(from + l, stride);
                    block.template multiply<N>(column, sums);
                } else {
                    BLOCK block;
                    block.interleave(from + l, stride);
                    if (!only) {
                        *kept = block;
                    }
                    block.template multiply<N>(column, sums);
                }
            } else {
                kept->template multiply<N>(column, sums);
            }
        }
        for (int c = 0; c < N; ++c) {
            float * to = C + ldc * (j + c) + i;
            if (count == 8) {
                _mm256_storeu_ps(to, sums[c]);
            } else {
                float all[8];
                _mm256_storeu_ps(all, sums[c]);
                memcpy(to, all, count * sizeof(float));
            }
        }
    }
};

template <typename BLOCK>
void multiply_rows(int64_t m, int64_t n, int64_t k, const typename BLOCK::Row * A, int64_t lda,
                   const typename BLOCK::Column * B, int64_t ldb, float * C, int64_t ldc, int ith, int nth) {
    static thread_local std::vector<BLOCK> rows;
    static thread_local std::vector<int32_t> columns;
    static thread_local std::vector<typename BLOCK::Row> last;
    rows_product<BLOCK>{m, n, k, A, lda, B, ldb, C, ldc, rows, columns, last}.multiply(ith, nth);
}

}  // namespace
#endif
