// How each byte is written inside a JSON string.
#pragma once

#include <cstdint>
#include <cstring>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a little-endian machine is required: the first byte of a word must be the lowest"
#endif

struct JsonEscapes {
    uint64_t text[256] = {};  // for each byte, the bytes to write for it, the first one in the lowest bits
    uint8_t size[256] = {};  // for each byte, how many bytes to write for it
};

// From 0x80 on, bytes of UTF-8 are copied; bytes of Latin-1 are characters, which are written as UTF-8.
constexpr JsonEscapes json_escapes(bool latin1) {
    const char hexadecimal[] = "0123456789abcdef";
    const char escaped[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
    JsonEscapes escapes;
    for (uint64_t byte = 0; byte < 256; byte++) {
        escapes.text[byte] = byte;
        escapes.size[byte] = 1;
        if (byte < 0x20) {
            const char text[] = {'\\', 'u', '0', '0', hexadecimal[byte >> 4], hexadecimal[byte & 15]};
            escapes.text[byte] = 0;
            for (int i = 0; i < 6; i++) escapes.text[byte] |= (uint64_t) text[i] << (8 * i);
            escapes.size[byte] = 6;
        }
        for (int i = 0; i < 7; i++)
            if (byte == (uint64_t) escaped[i]) {
                escapes.text[byte] = '\\' | (uint64_t) letters[i] << 8;
                escapes.size[byte] = 2;
            }
        if (latin1 && byte >= 0x80) {
            escapes.text[byte] = (0xC0 | byte >> 6) | (0x80 | (byte & 0x3F)) << 8;
            escapes.size[byte] = 2;
        }
    }
    return escapes;
}

static constexpr JsonEscapes UTF8_ESCAPES = json_escapes(false);
static constexpr JsonEscapes LATIN1_ESCAPES = json_escapes(true);

// Copy eight bytes; return how many of them precede the first one that needs an escape: eight if none needs one.
static inline int copy_plain_of_eight(const uint8_t* p, char* o) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    std::memcpy(&word, p, 8);
    std::memcpy(o, &word, 8);
    uint64_t quote = word ^ ones * 0x22, backslash = word ^ ones * 0x5C;
    uint64_t hit = ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
    hit &= ones * 0x80;
    return hit ? __builtin_ctzll(hit) >> 3 : 8;
}
