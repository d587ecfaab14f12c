// Writes bytes as base64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

constexpr char BASE64_DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct Base64Pairs {  // for each value of 12 bits, its two digits
    char digits[8192] = {};
};

constexpr Base64Pairs base64_pairs() {
    Base64Pairs pairs;
    for (int bits = 0; bits < 4096; bits++) {
        pairs.digits[2 * bits] = BASE64_DIGITS[bits >> 6];
        pairs.digits[2 * bits + 1] = BASE64_DIGITS[bits & 63];
    }
    return pairs;
}

static constexpr Base64Pairs BASE64_PAIRS = base64_pairs();

// Write `size` bytes as base64 to `o`, which must have room for `base64_size(size)` digits; return the end.
static inline char* put_base64(const uint8_t* p, ptrdiff_t size, char* o) {
    const char* pairs = BASE64_PAIRS.digits;
    for (; size >= 3; p += 3, o += 4, size -= 3) {
        unsigned bits = p[0] << 16 | p[1] << 8 | p[2];
        std::memcpy(o, pairs + 2 * (bits >> 12), 2);
        std::memcpy(o + 2, pairs + 2 * (bits & 4095), 2);
    }
    if (size) {
        unsigned bits = p[0] << 16 | (size == 2 ? p[1] << 8 : 0);
        std::memcpy(o, pairs + 2 * (bits >> 12), 2);
        o[2] = size == 2 ? BASE64_DIGITS[bits >> 6 & 63] : '=';
        o[3] = '=';
        o += 4;
    }
    return o;
}
