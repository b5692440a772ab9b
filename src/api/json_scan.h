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

// Length of the valid UTF-8 sequence of a non-ASCII character at the begin of `s`, 0 if invalid.
inline size_t Utf8Length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  uint32_t a = byte(0), b = byte(1);
  if (a >= 0xC2 && a <= 0xDF) return tail(1) ? 2 : 0;
  if ((a & 0xF0) == 0xE0) {
    bool ok = tail(1) && tail(2) && !(a == 0xE0 && b < 0xA0) && !(a == 0xED && b > 0x9F);
    return ok ? 3 : 0;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    bool ok = tail(1) && tail(2) && tail(3) && !(a == 0xF0 && b < 0x90) && !(a == 0xF4 && b > 0x8F);
    return ok ? 4 : 0;
  }
  return 0;
}

}  // namespace sextant::api
