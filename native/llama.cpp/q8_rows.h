// Products of Q8_0 and Q5_0 matrices with AVX2, eight rows of the weights at a time.  kernels.cmake adds this to
// llama.cpp.
//
// The lanes of a register are eight rows, so eight results share one conversion to float and one product of scales,
// where llamafile's tiles, whose lanes are parts of one row, spend them on each result.  Therefore rows are
// interleaved: four bytes of each, then the next four.  That is done once for all columns, while the first of them are
// multiplied, so that it takes no longer than fetching the rows from memory.  The registers of AVX-512 hold eight rows
// for two columns; with sixteen rows, a single column took twice as long on Zen 4.
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
#include <type_traits>
#include <vector>

namespace {

#if (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || defined(__AVXVNNI__)
#define Q8_DOT_UNSIGNED
#endif

// Have a sum computed now: without VNNI, compilers add in another order, and store terms for which there is no register.
template <typename INTS>
inline void in_order(INTS & sum) {
#if defined(__GNUC__) && !defined(Q8_DOT_UNSIGNED)
    __asm__("" : "+x"(sum));
#endif
}

// Eight rows of one column: arithmetic on their lanes.  Instructions multiply unsigned bytes by signed ones.  So
// something is added to the weights (`q8_block::LESS`), and what that adds to a sum is taken from it first.  Only those
// of Q8_0 are too large for it without VNNI: then their signs move to the column.
struct one_column {
    using Ints = __m256i;
    using Floats = __m256;
    static constexpr int COLUMNS = 1;

    static Ints words(const int32_t * column) { return _mm256_set1_epi32(*column); }
    static Floats floats(const int32_t * column) { return _mm256_castsi256_ps(words(column)); }
    static Ints rows(__m256i of_rows) { return of_rows; }
    static Floats rows(__m256 of_rows) { return of_rows; }
    static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
    static Ints subtract(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
    static Ints multiply(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
    static Ints multiply_halves(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
    static Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    static Floats add_product(Floats sum, Floats a, Ints b) { return _mm256_fmadd_ps(a, _mm256_cvtepi32_ps(b), sum); }
    static Floats take_product(Floats sum, Floats a, Ints b) { return _mm256_fnmadd_ps(a, _mm256_cvtepi32_ps(b), sum); }

#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    static Ints dot(Ints sums, Ints weights, Ints four) { return _mm256_dpbusd_epi32(sums, weights, four); }
#elif defined(__AVXVNNI__)
    static Ints dot(Ints sums, Ints weights, Ints four) { return _mm256_dpbusd_avx_epi32(sums, weights, four); }
#else
    static Ints dot(Ints sums, Ints weights, Ints four) {
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four, weights));
        return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }

    // Add to sums of 16 bits, which hold four such products of weights below 32.
    static Ints dot_pairs(Ints sums, Ints weights, Ints four) {
        return _mm256_add_epi16(sums, _mm256_maddubs_epi16(weights, four));
    }
#endif

    // Store `count` rows.
    static void store(Floats sums, float * to, int64_t, int, int count) {
        if (count == 8) {
            _mm256_storeu_ps(to, sums);
        } else {
            float all[8];
            _mm256_storeu_ps(all, sums);
            memcpy(to, all, count * sizeof(float));
        }
    }
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VNNI__)
// Eight rows of two neighbouring columns: the first row for both, then the second.
struct two_columns {
    using Ints = __m512i;
    using Floats = __m512;
    static constexpr int COLUMNS = 2;

    static Ints words(const int32_t * column) {
        int64_t both;
        memcpy(&both, column, sizeof(both));
        return _mm512_set1_epi64(both);
    }
    static Floats floats(const int32_t * column) { return _mm512_castsi512_ps(words(column)); }
    static Ints rows(__m256i of_rows) { return _mm512_permutexvar_epi32(twice(), _mm512_castsi256_si512(of_rows)); }
    static Floats rows(__m256 of_rows) { return _mm512_permutexvar_ps(twice(), _mm512_castps256_ps512(of_rows)); }
    static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
    static Ints subtract(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
    static Ints multiply(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
    static Ints multiply_halves(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
    static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    static Floats add_product(Floats sum, Floats a, Ints b) { return _mm512_fmadd_ps(a, _mm512_cvtepi32_ps(b), sum); }
    static Floats take_product(Floats sum, Floats a, Ints b) { return _mm512_fnmadd_ps(a, _mm512_cvtepi32_ps(b), sum); }
    static Ints dot(Ints sums, Ints weights, Ints four) { return _mm512_dpbusd_epi32(sums, weights, four); }

    // Store `count` rows of the first column and, if `width` is at least 2, of the second, `stride` behind it.
    static void store(Floats sums, float * to, int64_t stride, int width, int count) {
        const __m512i apart = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
        const __m512d both = _mm512_castps_pd(_mm512_permutexvar_ps(apart, sums));
        one_column::store(_mm256_castpd_ps(_mm512_castpd512_pd256(both)), to, stride, 1, count);
        if (width > 1) {
            one_column::store(_mm256_castpd_ps(_mm512_extractf64x4_pd(both, 1)), to + stride, stride, 1, count);
        }
    }

  private:
    static Ints twice() { return _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7); }
};
#else
using two_columns = one_column;
#endif

// Columns whose sums fit into the registers.
#if defined(Q8_DOT_UNSIGNED)
constexpr int ROWS_COLUMNS = 8 * two_columns::COLUMNS;
#else
constexpr int ROWS_COLUMNS = 4;
#endif

inline int32_t q8_sum(const int8_t * column) {
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
        sum += column[i];
    }
    return sum;
}

// The weights of two rows: sixteen of each in `low`, the other sixteen in `high`.
inline void q8_read(const block_q8_0 & a, const block_q8_0 & b, __m256i & low, __m256i & high) {
    low = _mm256_set_m128i(_mm_loadu_si128((const __m128i *) b.qs), _mm_loadu_si128((const __m128i *) a.qs));
    high = _mm256_set_m128i(_mm_loadu_si128((const __m128i *) b.qs + 1), _mm_loadu_si128((const __m128i *) a.qs + 1));
}

// The weights of a row, from 0 to 31.
inline __m256i q8_of(const block_q5_0 & row) {
    int32_t bits;
    memcpy(&bits, row.qh, sizeof(bits));
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i others = _mm256_set1_epi64x(0x7fbfdfeff7fbfdfe);  // all bits but one of each byte
    const __m256i spread = _mm256_or_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), bytes), others);
    const __m256i sixteens = _mm256_and_si256(_mm256_cmpeq_epi8(spread, _mm256_set1_epi8(-1)), _mm256_set1_epi8(16));
    const __m128i nibbles = _mm_loadu_si128((const __m128i *) row.qs);
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(nibbles, 4), nibbles);
    return _mm256_or_si256(_mm256_and_si256(both, _mm256_set1_epi8(15)), sixteens);
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
    static constexpr int COLUMNS = ROWS_COLUMNS;
    static constexpr int WORDS = 10;  // of a column: 32 bytes, the scale, and where sums begin
    static constexpr bool IS_Q5 = std::is_same_v<BLOCK, block_q5_0>;
#if defined(Q8_DOT_UNSIGNED)
    static constexpr int LESS = IS_Q5 ? 16 : 128;  // what a weight is less than its unsigned byte
#else
    static constexpr int LESS = IS_Q5 ? 16 : 0;
#endif

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
            four = LESS == 128 ? _mm256_xor_si256(four, _mm256_set1_epi8(-128)) : four;
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
        to[width * 9 + c] = LESS ? -LESS * q8_sum(column.qs) : 0;
    }

    // Add the products with N columns to `sums`.
    template <typename LANES, int N>
    void multiply(const int32_t * column, typename LANES::Floats * sums) const {
        constexpr int PARTS = N / LANES::COLUMNS;
        typename LANES::Ints products[PARTS];
        for (int p = 0; p < PARTS; ++p) {
            products[p] = LANES::words(column + N * 9 + LANES::COLUMNS * p);
        }
        add_products<LANES, N, PARTS>(column, products);
        const auto of_rows = LANES::rows(scales);
        for (int p = 0; p < PARTS; ++p) {
            const auto both = LANES::multiply(of_rows, LANES::floats(column + N * 8 + LANES::COLUMNS * p));
            sums[p] = LANES::add_product(sums[p], both, products[p]);
        }
    }

  private:
    template <typename LANES, int N, int PARTS>
    void add_products(const int32_t * column, typename LANES::Ints * products) const {
#if !defined(Q8_DOT_UNSIGNED)
        for (int half = 0; half < 8 && IS_Q5; half += 4) {
            __m256i pairs[N] = {};
            for (int s = half; s < half + 4; ++s) {
                for (int c = 0; c < N; ++c) {
                    pairs[c] = LANES::dot_pairs(pairs[c], weights[s], LANES::words(column + N * s + c));
                    in_order(pairs[c]);
                }
            }
            for (int c = 0; c < N; ++c) {
                products[c] = LANES::add(products[c], LANES::multiply_halves(pairs[c], _mm256_set1_epi16(1)));
            }
        }
        if (IS_Q5) {
            return;
        }
#endif
        for (int s = 0; s < 8; ++s) {
            const auto four = LANES::rows(weights[s]);
            for (int p = 0; p < PARTS; ++p) {
                products[p] = LANES::dot(products[p], four, LANES::words(column + N * s + LANES::COLUMNS * p));
                if (N > 1) {
                    in_order(products[p]);
                }
            }
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

    // The number of columns that are multiplied for `width`: further ones are zeros, which no one stores.
    static int64_t padded(int64_t width) {
        return width == 1 ? 1 : (width + two_columns::COLUMNS - 1) / two_columns::COLUMNS * two_columns::COLUMNS;
    }

    // Where the columns of a group are stored.
    int32_t * stored(int64_t group) { return columns.data() + WORDS * k * BLOCK::COLUMNS * group; }

    // Store columns as they are multiplied: by group, then by block, then by word.
    void read_columns() {
        columns.resize(groups() * BLOCK::COLUMNS * k * WORDS);
        for (int64_t g = 0; g < groups(); ++g) {
            const int64_t j = first(g), width = first(g + 1) - j, all = padded(width);
            int32_t * to = stored(g);
            for (int64_t l = 0; l < k; ++l, to += WORDS * all) {
                for (int64_t c = 0; c < width; ++c) {
                    BLOCK::read(B[ldb * (j + c) + l], to, all, c);
                }
                for (int64_t word = 0; word < WORDS && width < all; ++word) {
                    to[all * word + width] = 0;
                }
            }
        }
    }

    // Multiply eight rows, of which `count` count, by all columns.
    void all_columns(const Row * from, int64_t stride, int64_t i, int count) {
        for (int64_t g = 0; g < groups(); ++g) {
            if (first(g + 1) - first(g) == 1) {
                one_group<one_column, 1>(g, from, stride, i, count);
            } else {
                group<BLOCK::COLUMNS>(g, from, stride, i, count);
            }
        }
    }

    // Multiply them by the columns of a group, at most N.
    template <int N>
    void group(int64_t g, const Row * from, int64_t stride, int64_t i, int count) {
        constexpr int LESS = N - two_columns::COLUMNS;
        if constexpr (LESS > 1) {
            if (padded(first(g + 1) - first(g)) <= LESS) {
                group<LESS>(g, from, stride, i, count);
                return;
            }
        }
        one_group<two_columns, N>(g, from, stride, i, count);
    }

    template <typename LANES, int N>
    void one_group(int64_t g, const Row * from, int64_t stride, int64_t i, int count) {
        g ? one_group<LANES, N, false>(g, from, stride, i, count) : one_group<LANES, N, true>(g, from, stride, i, count);
    }

    template <typename LANES, int N, bool FIRST>
    __attribute__((noinline)) void one_group(int64_t g, const Row * from, int64_t stride, int64_t i, int count) {
        const char * next = (const char *) (from + BLOCK::ROWS * stride);
        BLOCK * kept = rows.data();
        const int32_t * column = stored(g);
        const int64_t length = k;
        const bool only = groups() == 1;
        typename LANES::Floats sums[N / LANES::COLUMNS] = {};
        for (int64_t l = 0; l < length; ++l, ++kept, column += WORDS * N) {
            if (FIRST) {
                prefetch<BLOCK::ROWS * sizeof(Row)>(next);
                if constexpr (sizeof(BLOCK) > 1024) {  // more than the registers
                    BLOCK & block = only ? rows[0] : *kept;
                    block.interleave(from + l, stride);
                    block.template multiply<LANES, N>(column, sums);
                } else {
                    BLOCK block;
                    block.interleave(from + l, stride);
                    if (!only) {
                        *kept = block;
                    }
                    block.template multiply<LANES, N>(column, sums);
                }
            } else {
                kept->template multiply<LANES, N>(column, sums);
            }
        }
        const int64_t j = first(g), end = first(g + 1);
        for (int c = 0; c < N; c += LANES::COLUMNS) {
            LANES::store(sums[c / LANES::COLUMNS], C + ldc * (j + c) + i, ldc, (int) (end - j - c), count);
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
