// Attention with AVX2 or AVX-512, for one token and for many.  kernels.cmake adds this to llama.cpp.
//
// llama.cpp's own kernel visits the cache position by position: a product, one exponential, a sum in 16-bit floats.
// Here eight positions make one register of scores, exponentials are taken of whole registers, and all query rows that
// read the same keys and values share their conversion to 32-bit floats.
//
// Each score is computed in the same way wherever it stands, and sums go position by position in 32-bit floats.  So a
// result depends neither on the other rows of a pass nor on where in the cache a sequence stands: passes over one token
// and over many are bit-identical.  llama.cpp's own tiles, which it uses from 64 rows on, sum in another order.

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define ATTENTION_ROWS
#include <algorithm>
#include <vector>

namespace {

#if defined(__AVX512F__) && defined(__AVX512DQ__)
using Lanes = __m512;
constexpr int LANES = 16;
inline Lanes lanes(float value) { return _mm512_set1_ps(value); }
inline Lanes lanes(const float * from) { return _mm512_loadu_ps(from); }
inline Lanes lanes(const ggml_fp16_t * from) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) from)); }
inline void store(float * to, Lanes from) { _mm512_storeu_ps(to, from); }
inline Lanes larger(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes sum) { return _mm512_fmadd_ps(a, b, sum); }
inline Lanes subtract(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
inline __m256 halved(Lanes sums) {
    return _mm256_add_ps(_mm512_castps512_ps256(sums),
                         _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums), 1)));
}
#else
using Lanes = __m256;
constexpr int LANES = 8;
inline Lanes lanes(float value) { return _mm256_set1_ps(value); }
inline Lanes lanes(const float * from) { return _mm256_loadu_ps(from); }
inline Lanes lanes(const ggml_fp16_t * from) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) from)); }
inline void store(float * to, Lanes from) { _mm256_storeu_ps(to, from); }
inline Lanes larger(Lanes a, Lanes b) { return _mm256_max_ps(a, b); }
inline Lanes multiply_add(Lanes a, Lanes b, Lanes sum) { return _mm256_fmadd_ps(a, b, sum); }
inline Lanes subtract(Lanes a, Lanes b) { return _mm256_sub_ps(a, b); }
inline __m256 halved(Lanes sums) { return sums; }
#endif

constexpr int BLOCK = 8;        // positions whose scores fill a register
constexpr int GROUP = 16;       // rows that share a conversion
constexpr int MOST_LANES = 16;  // scores are padded to this

// Rows of keys or values for the positions of a block.
template <typename T>
struct Block {
    const char * first;
    size_t stride;

    const T * at(int i) const { return (const T *) (first + i * stride); }

    // The next block's rows are too far apart for the processor to foresee.
    void prefetch_next(int64_t width) const {
        for (int i = BLOCK; i < 2 * BLOCK; ++i) {
            for (size_t byte = 0; byte < width * sizeof(T); byte += 64) {
                __builtin_prefetch(first + i * stride + byte);
            }
        }
    }
};

template <typename T>
inline __m256 scores_of(const float * query, const Block<T> & keys, int64_t width) {
    Lanes sums[BLOCK];
    for (auto & sum : sums) {
        sum = lanes(0.0f);
    }
    for (int64_t d = 0; d < width; d += LANES) {
        const Lanes part = lanes(query + d);
        for (int i = 0; i < BLOCK; ++i) {
            sums[i] = multiply_add(part, lanes(keys.at(i) + d), sums[i]);
        }
    }
    const auto pair = [&](int i) { return _mm256_hadd_ps(halved(sums[i]), halved(sums[i + 1])); };
    const __m256 first = _mm256_hadd_ps(pair(0), pair(2)), second = _mm256_hadd_ps(pair(4), pair(6));
    return _mm256_add_ps(_mm256_permute2f128_ps(first, second, 0x20), _mm256_permute2f128_ps(first, second, 0x31));
}

// Add the values times `weights` to `sums`, four registers at a time.
template <typename T>
inline void add_values(float * sums, const float * weights, const Block<T> & values, int64_t width) {
    int64_t d = 0;
    for (; d + 4 * LANES <= width; d += 4 * LANES) {
        Lanes sum[4];
        for (int c = 0; c < 4; ++c) {
            sum[c] = lanes((const float *) sums + d + c * LANES);
        }
        for (int i = 0; i < BLOCK; ++i) {
            const Lanes weight = lanes(weights[i]);
            for (int c = 0; c < 4; ++c) {
                sum[c] = multiply_add(weight, lanes(values.at(i) + d + c * LANES), sum[c]);
            }
        }
        for (int c = 0; c < 4; ++c) {
            store(sums + d + c * LANES, sum[c]);
        }
    }
    for (; d < width; d += LANES) {
        Lanes sum = lanes((const float *) sums + d);
        for (int i = 0; i < BLOCK; ++i) {
            sum = multiply_add(lanes(weights[i]), lanes(values.at(i) + d), sum);
        }
        store(sums + d, sum);
    }
}

// Keys or values in 32-bit floats; zeros behind the end.
template <typename T>
inline void convert(const Block<T> & from, int64_t positions, float * to, int64_t width) {
    for (int i = 0; i < BLOCK; ++i) {
        for (int64_t d = 0; d < width; d += LANES) {
            store(to + i * width + d, i < positions ? lanes(from.at(i) + d) : lanes(0.0f));
        }
    }
}

// A query of one head at one token.
struct Row {
    const float * query;
    const ggml_fp16_t * mask;  // null: all positions are seen
    float * out;
    float * scores;         // of the blocks that it sees, then their weights
    std::vector<int> seen;  // those blocks
    float sum;              // of the weights
};

// The masks of a block; behind the end, minus infinity.
inline __m128i mask_of(const Row & row, int64_t first, int64_t positions) {
    if (row.mask && positions >= BLOCK) {
        return _mm_loadu_si128((const __m128i *) (row.mask + first));
    }
    ggml_fp16_t mask[BLOCK];
    for (int i = 0; i < BLOCK; ++i) {
        mask[i] = i >= positions ? 0xfc00 : row.mask ? row.mask[first + i] : 0;
    }
    return _mm_loadu_si128((const __m128i *) mask);
}

inline bool sees_none(__m128i mask) {
    return _mm_movemask_epi8(_mm_cmpeq_epi16(mask, _mm_set1_epi16((short) 0xfc00))) == 0xffff;
}

// Turn scores into weights relative to the largest one.
inline void weigh(Row & row) {
    const float * scores = row.scores;
    size_t count = row.seen.size() * BLOCK;
    for (; count % LANES; ++count) {
        row.scores[count] = -INFINITY;
    }
    Lanes most = lanes(-INFINITY);
    for (size_t i = 0; i < count; i += LANES) {
        most = larger(most, lanes(scores + i));
    }
    float each[LANES];
    store(each, most);
    const Lanes largest = lanes(*std::max_element(each, each + LANES));
    for (size_t i = 0; i < count; i += LANES) {
        store(row.scores + i, ggml_v_expf(subtract(lanes(scores + i), largest)));
    }
}

// Let `rows` attend to the positions of one head of keys and values.
template <typename K, typename V>
void attend(std::vector<Row> & rows, int count, const char * keys, size_t key_stride, const char * values,
            size_t value_stride, int64_t positions, int64_t key_width, int64_t value_width, float scale) {
    static thread_local std::vector<float> converted;
    converted.resize(BLOCK * MAX(key_width, value_width));
    const Block<float> shared_keys = {(const char *) converted.data(), key_width * sizeof(float)};
    const Block<float> shared_values = {(const char *) converted.data(), value_width * sizeof(float)};
    const int blocks = (positions + BLOCK - 1) / BLOCK;

    for (int b = 0; b < blocks; ++b) {
        const int64_t first = (int64_t) b * BLOCK, left = positions - first;
        const Block<K> block = {keys + first * key_stride, key_stride};
        const bool shared = count > 1 || left < BLOCK;
        bool ready = false;
        for (int r = 0; r < count; ++r) {
            Row & row = rows[r];
            const __m128i mask = mask_of(row, first, left);
            if (sees_none(mask)) {
                continue;
            }
            if (!ready) {
                block.prefetch_next(key_width);
                if (shared) {
                    convert(block, left, converted.data(), key_width);
                }
                ready = true;
            }
            const __m256 scores =
                shared ? scores_of(row.query, shared_keys, key_width) : scores_of(row.query, block, key_width);
            _mm256_storeu_ps(row.scores + row.seen.size() * BLOCK,
                             _mm256_fmadd_ps(scores, _mm256_set1_ps(scale), _mm256_cvtph_ps(mask)));
            row.seen.push_back(b);
        }
    }

    size_t next[GROUP] = {};  // block of each row that it has come to
    for (int r = 0; r < count; ++r) {
        weigh(rows[r]);
        rows[r].sum = 0.0f;
        memset(rows[r].out, 0, value_width * sizeof(float));
    }
    for (int b = 0; b < blocks; ++b) {
        const int64_t first = (int64_t) b * BLOCK, left = positions - first;
        const Block<V> block = {values + first * value_stride, value_stride};
        const bool shared = count > 1 || left < BLOCK;
        bool ready = false;
        for (int r = 0; r < count; ++r) {
            Row & row = rows[r];
            if (next[r] == row.seen.size() || row.seen[next[r]] != b) {
                continue;
            }
            const float * weights = row.scores + next[r]++ * BLOCK;
            if (!ready) {
                block.prefetch_next(value_width);
                if (shared) {
                    convert(block, left, converted.data(), value_width);
                }
                ready = true;
            }
            if (shared) {
                add_values(row.out, weights, shared_values, value_width);
            } else {
                add_values(row.out, weights, block, value_width);
            }
            for (int i = 0; i < BLOCK; ++i) {
                row.sum += weights[i];
            }
        }
    }
    for (int r = 0; r < count; ++r) {
        const float share = rows[r].sum == 0.0f ? 0.0f : 1.0f / rows[r].sum;
        for (int64_t d = 0; d < value_width; ++d) {
            rows[r].out[d] *= share;
        }
    }
}

inline char * at(const ggml_tensor * tensor, int64_t i1, int64_t i2, int64_t i3) {
    return (char *) tensor->data + i1 * tensor->nb[1] + i2 * tensor->nb[2] + i3 * tensor->nb[3];
}

// Compute this thread's rows of a flash attention; false, and nothing is done, where it has a part that is not here.
bool attention_rows(const ggml_compute_params * params, ggml_tensor * dst) {
    const ggml_tensor * q = dst->src[0], * k = dst->src[1], * v = dst->src[2], * mask = dst->src[3];
    float settings[3];  // scale, maximum bias, cap of the logits
    memcpy(settings, dst->op_params, sizeof(settings));
    const auto is_float = [](const ggml_tensor * t) { return t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_F32; };
    if (settings[1] != 0.0f || settings[2] != 0.0f || dst->src[4] || q->type != GGML_TYPE_F32 || !is_float(k) ||
        !is_float(v) || k->ne[0] % LANES || v->ne[0] % LANES || q->ne[2] % k->ne[2] || k->ne[2] != v->ne[2]) {
        return false;
    }

    const int64_t tokens = q->ne[1], heads = q->ne[2], sharing = heads / k->ne[2], all = tokens * heads * q->ne[3];
    const int64_t begin = all * params->ith / params->nth, end = all * (params->ith + 1) / params->nth;
    const size_t padded = (k->ne[1] + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
    static thread_local std::vector<Row> rows(GROUP);
    static thread_local std::vector<float> scores;
    scores.resize(GROUP * padded);

    for (int64_t next = begin; next < end;) {
        int count = 0;
        const int64_t batch = next / (tokens * heads), group = next / tokens % heads / sharing;
        for (; next < end && count < GROUP; ++next, ++count) {
            const int64_t head = next / tokens % heads, token = next % tokens;
            if (next / (tokens * heads) != batch || head / sharing != group) {
                break;
            }
            Row & row = rows[count];
            row.query = (const float *) at(q, token, head, batch);
            row.mask = mask ? (const ggml_fp16_t *) at(mask, token, head % mask->ne[2], batch % mask->ne[3]) : nullptr;
            row.out = (float *) at(dst, head, token, batch);
            row.scores = scores.data() + count * padded;
            row.seen.clear();
        }
        const char * keys = at(k, 0, group, batch / (q->ne[3] / k->ne[3]));
        const char * values = at(v, 0, group, batch / (q->ne[3] / v->ne[3]));
        const auto run = [&](auto key, auto value) {
            attend<decltype(key), decltype(value)>(rows, count, keys, k->nb[1], values, v->nb[1], k->ne[1], k->ne[0],
                                                   v->ne[0], settings[0]);
        };
        if (k->type == GGML_TYPE_F16) {
            v->type == GGML_TYPE_F16 ? run(ggml_fp16_t(), ggml_fp16_t()) : run(ggml_fp16_t(), float());
        } else {
            v->type == GGML_TYPE_F16 ? run(float(), ggml_fp16_t()) : run(float(), float());
        }
    }
    return true;
}

}  // namespace
#endif
