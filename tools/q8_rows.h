// Products of Q8_0 matrices with AVX2, eight rows of the weights at a time.  tools/kernels.cmake adds this to llama.cpp,
// after its own `prefetch`.
//
// The lanes of a register are eight rows, so eight results share one conversion to float and one product of scales, where
// llamafile's tiles, whose lanes are parts of one row, spend them on each result.  Therefore rows are interleaved: four
// bytes of each, then the next four.  That is done once for all columns, while the first of them are multiplied, so that
// it takes no longer than fetching the rows from memory.
//
// A result is the sum over blocks, in order, of an exact integer product times the product of both scales.  It does not
// depend on the other columns, so passes over one token and over many are bit-identical.

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define Q8_ROWS
#include <cstring>
#include <vector>

namespace {

// A block of eight rows.
struct alignas(32) q8_block {
    int8_t bytes[8][32];  // in each, four bytes of every row
    float scales[8];

    // Read the block from rows that are `stride` blocks apart.
    void interleave(const block_q8_0 * A, int64_t stride) {
        for (int half = 0; half < 2; ++half) {
            __m256i r[4], t[4];
            for (int i = 0; i < 4; ++i) {
                r[i] = MM256_SET_M128I(_mm_loadu_si128((const __m128i *) A[stride * (i + 4)].qs + half),
                                       _mm_loadu_si128((const __m128i *) A[stride * i].qs + half));
            }
            t[0] = _mm256_unpacklo_epi32(r[0], r[1]);
            t[1] = _mm256_unpackhi_epi32(r[0], r[1]);
            t[2] = _mm256_unpacklo_epi32(r[2], r[3]);
            t[3] = _mm256_unpackhi_epi32(r[2], r[3]);
            _mm256_store_si256((__m256i *) bytes[4 * half], _mm256_unpacklo_epi64(t[0], t[2]));
            _mm256_store_si256((__m256i *) bytes[4 * half + 1], _mm256_unpackhi_epi64(t[0], t[2]));
            _mm256_store_si256((__m256i *) bytes[4 * half + 2], _mm256_unpacklo_epi64(t[1], t[3]));
            _mm256_store_si256((__m256i *) bytes[4 * half + 3], _mm256_unpackhi_epi64(t[1], t[3]));
        }
        const __m128i halves = _mm_setr_epi16(A[0].d, A[stride].d, A[stride * 2].d, A[stride * 3].d, A[stride * 4].d,
                                              A[stride * 5].d, A[stride * 6].d, A[stride * 7].d);
        _mm256_store_ps(scales, _mm256_cvtph_ps(halves));
    }
};

// A product C = A * B, in which row j of C has the products of all rows of A, of k blocks, with row j of B.
struct q8_product {
    int64_t m, n, k;
    const block_q8_0 * A;
    int64_t lda;
    const block_q8_0 * B;
    int64_t ldb;
    float * C;
    int64_t ldc;
    std::vector<q8_block> & rows;    // k blocks of the present rows
    std::vector<float> & b_scales;   // n times k
    std::vector<block_q8_0> & last;  // the last rows of A, if they are fewer than eight

    void multiply(int ith, int nth) {
        rows.resize(k);
        b_scales.resize(n * k);
        for (int64_t j = 0; j < n; ++j) {
            for (int64_t l = 0; l < k; ++l) {
                b_scales[k * j + l] = unhalf(B[ldb * j + l].d);
            }
        }
        const int64_t tiles = (m + 7) / 8, duty = (tiles + nth - 1) / nth;
        const int64_t end = MIN(duty * (ith + 1), tiles);
        for (int64_t tile = duty * ith; tile < end; ++tile) {
            const int count = (int) MIN(m - 8 * tile, (int64_t) 8);
            if (count == 8) {
                columns(A + lda * 8 * tile, lda, 8 * tile, count);
            } else {
                last.resize(8 * k);
                for (int i = 0; i < 8; ++i) {
                    memcpy(&last[k * i], A + lda * (8 * tile + MIN(i, count - 1)), k * sizeof(block_q8_0));
                }
                columns(last.data(), k, 8 * tile, count);
            }
        }
    }

  private:
    // Multiply eight rows, of which `count` count, by all columns: up to four at a time, in groups of nearly equal size.
    void columns(const block_q8_0 * from, int64_t stride, int64_t i, int count) {
        const int64_t groups = (n + 3) / 4;
        for (int64_t g = 0, j = 0; g < groups; ++g) {
            const int64_t width = (n - j + groups - g - 1) / (groups - g);
            switch (width) {
                case 4: g ? group<4, false>(from, stride, i, j, count) : group<4, true>(from, stride, i, j, count); break;
                case 3: g ? group<3, false>(from, stride, i, j, count) : group<3, true>(from, stride, i, j, count); break;
                case 2: g ? group<2, false>(from, stride, i, j, count) : group<2, true>(from, stride, i, j, count); break;
                default: group<1, true>(from, stride, i, j, count);
            }
            j += width;
        }
    }

    template <int N, bool FIRST>
    NOINLINE void group(const block_q8_0 * from, int64_t stride, int64_t i, int64_t j, int count) {
        const __m256i ones = _mm256_set1_epi16(1);
        const char * next = (const char *) (from + 8 * stride);
        q8_block * block = rows.data();
        const block_q8_0 * b_row = B + ldb * j;
        const float * b_scale = b_scales.data() + k * j;
        const int64_t length = k, b_stride = ldb;
        __m256 sums[N] = {};
        for (int64_t l = 0; l < length; ++l, ++block, ++b_row, ++b_scale) {
            if (FIRST) {
                prefetch<8 * sizeof(block_q8_0)>(next);
                block->interleave(from + l, stride);
            }
            __m256i products[N] = {};
            for (int s = 0; s < 8; ++s) {
                const __m256i a = _mm256_load_si256((const __m256i *) block->bytes[s]);
                const __m256i size = _mm256_abs_epi8(a);
                for (int c = 0; c < N; ++c) {
                    int32_t four;
                    memcpy(&four, b_row[b_stride * c].qs + 4 * s, sizeof(four));
                    const __m256i b = _mm256_sign_epi8(_mm256_set1_epi32(four), a);
                    const __m256i sums_of_four = _mm256_madd_epi16(_mm256_maddubs_epi16(size, b), ones);
                    products[c] = _mm256_add_epi32(products[c], sums_of_four);
                }
            }
            const __m256 scales = _mm256_load_ps(block->scales);
            for (int c = 0; c < N; ++c) {
                const __m256 both = _mm256_mul_ps(scales, _mm256_set1_ps(b_scale[length * c]));
                sums[c] = _mm256_fmadd_ps(both, _mm256_cvtepi32_ps(products[c]), sums[c]);
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

void q8_rows(int64_t m, int64_t n, int64_t k, const block_q8_0 * A, int64_t lda, const block_q8_0 * B, int64_t ldb,
             float * C, int64_t ldc, int ith, int nth) {
    static thread_local std::vector<q8_block> rows;
    static thread_local std::vector<float> b_scales;
    static thread_local std::vector<block_q8_0> last;
    q8_product{m, n, k, A, lda, B, ldb, C, ldc, rows, b_scales, last}.multiply(ith, nth);
}

}  // namespace
#endif
