// The inner loops of the JSON reader and writer: finding the bytes that need a closer look, sixteen
// at a time where the processor can.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sextant::api {

// Bytes that must be readable behind a text that FindSpecial looks at.
inline constexpr size_t kScanPadding = 16;

inline bool IsSpecial(char c) {
  return static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\';
}

// The first byte from `p` on that is a quote, a backslash, a control character or not ASCII. There
// must be one (a text ends with a NUL).
inline const char* FindSpecial(const char* p) {
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                space = _mm_set1_epi8(0x20);
  while (true) {
    __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    // Signed: bytes from 0x80 on are below 0x20 as well.
    __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                               _mm_cmplt_epi8(v, space));
    if (auto mask = static_cast<uint32_t>(_mm_movemask_epi8(hit)); mask != 0) {
      return p + std::countr_zero(mask);
    }
    p += 16;
  }
#else
  while (!IsSpecial(*p)) ++p;
  return p;
#endif
}

// The first byte of [p, end) that a JSON string cannot hold as it is, or `end`. With `html` < > &
// count as well; bytes that are not ASCII always do (they may be invalid, or U+2028).
inline const char* FindEscape(const char* p, const char* end, bool html) {
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                space = _mm_set1_epi8(0x20);
  const __m128i less = _mm_set1_epi8('<'), more = _mm_set1_epi8('>'), amp = _mm_set1_epi8('&');
  for (; end - p >= 16; p += 16) {
    __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                               _mm_cmplt_epi8(v, space));
    if (html) {
      hit = _mm_or_si128(hit, _mm_or_si128(_mm_cmpeq_epi8(v, less), _mm_cmpeq_epi8(v, more)));
      hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, amp));
    }
    if (auto mask = static_cast<uint32_t>(_mm_movemask_epi8(hit)); mask != 0) {
      return p + std::countr_zero(mask);
    }
  }
#endif
  for (; p != end; ++p) {
    if (IsSpecial(*p) || (html && (*p == '<' || *p == '>' || *p == '&'))) return p;
  }
  return p;
}

}  // namespace sextant::api
