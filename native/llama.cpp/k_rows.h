// Products of Q4_K and Q6_K matrices with AVX2, eight rows of the weights at a time, as in q8_rows.h.
//
// llama.cpp multiplies Q6_K by one column at a time, and Q4_K by up to four, which takes as long as four single ones.
// Here all columns share the decoding of the weights.  Weights remain unsigned: what is subtracted from each, a minimum
// in Q4_K and 32 in Q6_K, is multiplied by the sums of the columns' values.

#pragma once
#include "q8_rows.h"

#if defined(Q8_ROWS)
#include "ggml-cpu.h"
#include "repack.h"

#include <cstdlib>
#if defined(__GNUC__)
#include <cpuid.h>
#endif

namespace {

// Multiply by the scales of a group; with AVX2 alone they stand twice in each lane.
#if defined(Q8_DOT_UNSIGNED)
inline __m256i k_scales(__m256i scales) { return scales; }

template <typename LANES, int GROUP, int N, int PARTS>
inline void k_multiply(typename LANES::Ints * totals, const __m256i * weights, const int32_t * column, __m256i scales) {
    typename LANES::Ints products[PARTS] = {};
    for (int s = 0; s < GROUP / 4; ++s) {
        const auto four = LANES::rows(weights[s]);
        for (int p = 0; p < PARTS; ++p) {
            products[p] = LANES::dot(products[p], four, LANES::words(column + N * s + LANES::COLUMNS * p));
        }
    }
    const auto of_rows = LANES::rows(scales);
    for (int p = 0; p < PARTS; ++p) {
        totals[p] = LANES::add(totals[p], LANES::multiply(products[p], of_rows));
    }
}
#else

inline __m256i k_scales(__m256i scales) {
    return _mm256_or_si256(_mm256_and_si256(scales, _mm256_set1_epi32(0xffff)), _mm256_slli_epi32(scales, 16));
}

template <typename LANES, int GROUP, int N, int PARTS>
inline void k_multiply(__m256i * totals, const __m256i * weights, const int32_t * column, __m256i scales) {
    constexpr int TOGETHER = GROUP / 4 == 8 ? 8 : 2;  // whose sums fit into 16 bits
    for (int first = 0; first < GROUP / 4; first += TOGETHER) {
        __m256i pairs[PARTS] = {};
        for (int s = first; s < first + TOGETHER; ++s) {
            for (int c = 0; c < PARTS; ++c) {
                const __m256i four = _mm256_set1_epi32(column[N * s + c]);
                pairs[c] = LANES::dot_pairs(pairs[c], weights[s], four);
                in_order(pairs[c]);
            }
        }
        for (int c = 0; c < PARTS; ++c) {
            totals[c] = _mm256_add_epi32(totals[c], _mm256_madd_epi16(pairs[c], scales));
        }
    }
}
#endif

// Transpose sixteen bytes of eight rows: register t has bytes 2t of all rows, then bytes 2t + 1.
inline void k_transpose(const __m128i * rows, __m128i * bytes) {
    __m128i t[8];
    for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 4]);
        t[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 4]);
    }
    __m128i u[8];  // of rows 0, 2, 4 and 6, and of the others, four bytes each
    for (int half = 0; half < 2; ++half) {
        for (int odd = 0; odd < 2; ++odd) {
            u[4 * half + 2 * odd] = _mm_unpacklo_epi8(t[2 * odd + half], t[2 * (odd + 2) + half]);
            u[4 * half + 2 * odd + 1] = _mm_unpackhi_epi8(t[2 * odd + half], t[2 * (odd + 2) + half]);
        }
    }
    for (int half = 0; half < 2; ++half) {
        for (int part = 0; part < 2; ++part) {
            bytes[4 * half + 2 * part] = _mm_unpacklo_epi8(u[4 * half + part], u[4 * half + 2 + part]);
            bytes[4 * half + 2 * part + 1] = _mm_unpackhi_epi8(u[4 * half + part], u[4 * half + 2 + part]);
        }
    }
}

// A block of eight rows; GROUP weights have one scale.
template <typename BLOCK, int GROUP, int OF>
struct k_block {
    using Row = BLOCK;
    using Column = block_q8_K;
    static constexpr int ROWS = OF;
    static constexpr int COLUMNS = ROWS_COLUMNS;
    static constexpr int GROUPS = QK_K / GROUP;
    static constexpr int WORDS = QK_K / 4 + GROUPS / 2 + 1;  // of a column: 256 bytes, sums of groups, the scale

    __m256i weights[QK_K / 4];  // in each, four bytes of every row
    __m256i scales[GROUPS];
    __m256i minimums[GROUPS / 2];  // 16-bit integers, of two groups
    __m256 factors;                // of the scales
    __m256 least;                  // factors of the minimums in Q4_K

    // Read the block from rows that are `stride` blocks apart.
    void interleave(const BLOCK * A, int64_t stride);

    // Store a column as word `c` of every `width` words.
    static void read(const block_q8_K & column, int32_t * to, int64_t width, int64_t c) {
        for (int s = 0; s < QK_K / 4; ++s) {
            memcpy(to + width * s + c, column.qs + 4 * s, 4);
        }
        for (int pair = 0; pair < GROUPS / 2; ++pair) {
            int16_t sums[2];
            for (int i = 0; i < 2; ++i) {
                const int16_t * sixteens = column.bsums + (2 * pair + i) * (GROUP / 16);
                sums[i] = GROUP == 16 ? sixteens[0] : sixteens[0] + sixteens[1];
            }
            memcpy(to + width * (QK_K / 4 + pair) + c, sums, 4);
        }
        memcpy(to + width * (WORDS - 1) + c, &column.d, 4);
    }

    // Add the products with N columns to `sums`.
    template <typename LANES, int N>
    void multiply(const int32_t * column, typename LANES::Floats * sums) const {
        constexpr int PARTS = N / LANES::COLUMNS;
        typename LANES::Ints totals[PARTS] = {}, taken[PARTS] = {};
        for (int g = 0; g < GROUPS; ++g) {
            const int32_t * group = column + N * g * (GROUP / 4);
            k_multiply<LANES, GROUP, N, PARTS>(totals, weights + g * (GROUP / 4), group, scales[g]);
        }
        column += N * (QK_K / 4);
        for (int pair = 0; pair < GROUPS / 2; ++pair) {
            const auto minimum = LANES::rows(minimums[pair]);
            for (int p = 0; p < PARTS; ++p) {
                const auto both = LANES::words(column + N * pair + LANES::COLUMNS * p);
                taken[p] = LANES::add(taken[p], LANES::multiply_halves(minimum, both));
            }
        }
        const auto of_rows = LANES::rows(factors), of_minimums = LANES::rows(least);
        for (int p = 0; p < PARTS; ++p) {
            const auto scale = LANES::floats(column + N * (GROUPS / 2) + LANES::COLUMNS * p);
            const auto both = LANES::multiply(of_rows, scale);
            if constexpr (GROUP == 16) {  // minimums have the same factor
                sums[p] = LANES::add_product(sums[p], both, LANES::subtract(totals[p], taken[p]));
            } else {
                sums[p] = LANES::add_product(sums[p], both, totals[p]);
                sums[p] = LANES::take_product(sums[p], LANES::multiply(of_minimums, scale), taken[p]);
            }
        }
    }

  private:
    // Read 32 bytes of each row, which are `size` bytes apart.
    static void read_bytes(const uint8_t * from, int64_t size, __m256i * fours) {
        __m256i low[4], high[4];
        for (int i = 0; i < 4; ++i) {
            const __m128i * a = (const __m128i *) (from + size * i), * b = (const __m128i *) (from + size * (i + 4));
            low[i] = _mm256_set_m128i(_mm_loadu_si128(b), _mm_loadu_si128(a));
            high[i] = _mm256_set_m128i(_mm_loadu_si128(b + 1), _mm_loadu_si128(a + 1));
        }
        rows_transpose(low, fours);
        rows_transpose(high, fours + 4);
    }

    static __m256 read_halves(const ggml_half * from, int64_t size) {
        ggml_half all[8];
        for (int i = 0; i < 8; ++i) {
            memcpy(all + i, (const char *) from + size * i, sizeof(ggml_half));
        }
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) all));
    }
};

using q4_k_rows = k_block<block_q4_K, 32, 8>;
using q6_k_rows = k_block<block_q6_K, 16, 8>;
using q4_k_repacked = k_block<block_q4_Kx8, 32, 1>;  // eight rows, eight bytes of each at a time

// Unpack eight values of six bits, then eight others, from twelve bytes with others behind them.
inline __m128i q4_k_unpack(const uint8_t * twelve) {
    const __m128i in = _mm_loadu_si128((const __m128i *) twelve);
    const __m128i most = _mm_srlv_epi32(_mm_shuffle_epi32(in, 0x50), _mm_setr_epi32(0, 2, 0, 2));
    const __m128i rest = _mm_srlv_epi32(_mm_shuffle_epi32(in, 0xaa), _mm_setr_epi32(0, 0, 0, 4));
    const __m128i of_most = _mm_setr_epi32(0x3f3f3f3f, 0x30303030, 0x3f3f3f3f, 0x30303030);
    return _mm_or_si128(_mm_and_si128(most, of_most),
                        _mm_and_si128(rest, _mm_setr_epi32(0, 0x0f0f0f0f, 0, 0x0f0f0f0f)));
}

// Turn 32 bytes of each row into 64 weights.
inline void q4_k_weights(const __m256i * fours, __m256i * weights) {
    const __m256i nibble = _mm256_set1_epi8(15);
    for (int s = 0; s < 8; ++s) {
        weights[s] = _mm256_and_si256(fours[s], nibble);
        weights[s + 8] = _mm256_and_si256(_mm256_srli_epi16(fours[s], 4), nibble);
    }
}

template <>
inline void q4_k_rows::interleave(const block_q4_K * A, int64_t stride) {
    const int64_t size = stride * sizeof(block_q4_K);
    for (int j = 0; j < 4; ++j) {
        __m256i fours[8];
        read_bytes(A->qs + 32 * j, size, fours);
        q4_k_weights(fours, weights + 16 * j);
    }
    __m128i rows[8], bytes[8];  // eight scales, then eight minimums
    for (int i = 0; i < 8; ++i) {
        rows[i] = q4_k_unpack(A[stride * i].scales);
    }
    k_transpose(rows, bytes);
    for (int pair = 0; pair < 4; ++pair) {
        const __m128i low = bytes[pair], high = _mm_srli_si128(low, 8), least = bytes[pair + 4];
        scales[2 * pair] = k_scales(_mm256_cvtepu8_epi32(low));
        scales[2 * pair + 1] = k_scales(_mm256_cvtepu8_epi32(high));
        minimums[pair] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(least, _mm_srli_si128(least, 8)));
    }
    factors = read_halves((const ggml_half *) A, size);  // `d`, which has another name in a part of llama.cpp
    least = read_halves((const ggml_half *) A + 1, size);
}

template <>
inline void q4_k_repacked::interleave(const block_q4_Kx8 * A, int64_t) {
    for (int j = 0; j < 4; ++j) {
        __m256i fours[8];
        for (int s = 0; s < 8; s += 2) {
            const __m256 first = _mm256_loadu_ps((const float *) A->qs + 64 * j + 8 * s);
            const __m256 last = _mm256_loadu_ps((const float *) A->qs + 64 * j + 8 * s + 8);
            const auto rows = [](__m256 pairs) { return _mm256_permute4x64_epi64(_mm256_castps_si256(pairs), 0xd8); };
            fours[s] = rows(_mm256_shuffle_ps(first, last, 0x88));
            fours[s + 1] = rows(_mm256_shuffle_ps(first, last, 0xdd));
        }
        q4_k_weights(fours, weights + 16 * j);
    }
    for (int pair = 0; pair < 4; ++pair) {
        const __m128i first = q4_k_unpack(A->scales + 24 * pair), second = q4_k_unpack(A->scales + 24 * pair + 12);
        scales[2 * pair] = k_scales(_mm256_cvtepu8_epi32(first));
        scales[2 * pair + 1] = k_scales(_mm256_cvtepu8_epi32(second));
        minimums[pair] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second));
    }
    factors = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) A->d));
    least = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) A->dmin));
}

template <>
inline void q6_k_rows::interleave(const block_q6_K * A, int64_t stride) {
    const int64_t size = stride * sizeof(block_q6_K);
    const __m256i nibble = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    for (int n = 0; n < 2; ++n) {
        __m256i first[8], second[8], bits[8];
        read_bytes(A->ql + 64 * n, size, first);
        read_bytes(A->ql + 64 * n + 32, size, second);
        read_bytes(A->qh + 32 * n, size, bits);
        for (int s = 0; s < 8; ++s) {
            const auto joined = [&](__m256i low, __m256i high) {
                return _mm256_or_si256(_mm256_and_si256(low, nibble), _mm256_and_si256(high, two));
            };
            __m256i * to = weights + 32 * n + s;
            to[0] = joined(first[s], _mm256_slli_epi16(bits[s], 4));
            to[8] = joined(second[s], _mm256_slli_epi16(bits[s], 2));
            to[16] = joined(_mm256_srli_epi16(first[s], 4), bits[s]);
            to[24] = joined(_mm256_srli_epi16(second[s], 4), _mm256_srli_epi16(bits[s], 2));
        }
    }
    __m128i rows[8], bytes[8];
    for (int i = 0; i < 8; ++i) {
        rows[i] = _mm_loadu_si128((const __m128i *) A[stride * i].scales);
    }
    k_transpose(rows, bytes);
    for (int pair = 0; pair < 8; ++pair) {
        const __m128i low = bytes[pair], high = _mm_srli_si128(low, 8);
        scales[2 * pair] = k_scales(_mm256_cvtepi8_epi32(low));
        scales[2 * pair + 1] = k_scales(_mm256_cvtepi8_epi32(high));
        minimums[pair] = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(low, high)), 5);
    }
    factors = read_halves(&A->d, size);
}

// Whether to multiply a single column here too.  On AMD's processors with AVX-512, llama.cpp takes less time for it,
// unless rows must not depend on the number of columns, as a program wants that switches llama.cpp's tiles off.
inline bool k_alone() {
    static const bool alone = [] {
        const char * tiles = getenv("GGML_CPU_TILED_MM");
        if (tiles && !atoi(tiles)) {
            return true;
        }
#if defined(__AVX512F__) && defined(__GNUC__)
        unsigned a = 0, b = 0, c = 0, d = 0;
        return !__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx;
#else
        return true;
#endif
    }();
    return alone;
}

// Multiply a repacked matrix of Q4_K.
inline void multiply_repacked(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * a = dst->src[0], * b = dst->src[1];
    GGML_ASSERT(a->ne[2] == 1 && b->ne[3] == 1);
    const int64_t k = a->ne[0] / QK_K, n = b->ne[1];
    const auto quantise = ggml_get_type_traits_cpu(GGML_TYPE_Q8_K)->from_float;
    block_q8_K * columns = (block_q8_K *) params->wdata;
    for (int64_t j = params->ith; j < n * b->ne[2]; j += params->nth) {
        quantise((const float *) ((const char *) b->data + j % n * b->nb[1] + j / n * b->nb[2]), columns + k * j,
                 a->ne[0]);
    }
    ggml_barrier(params->threadpool);
    for (int64_t plane = 0; plane < b->ne[2]; ++plane) {
        multiply_rows<q4_k_repacked>(a->ne[1], n, k, (const block_q4_Kx8 *) a->data, k, columns + k * n * plane, k,
                                     (float *) ((char *) dst->data + plane * dst->nb[2]), dst->nb[1] / sizeof(float),
                                     params->ith, params->nth);
    }
}

}  // namespace
#endif
