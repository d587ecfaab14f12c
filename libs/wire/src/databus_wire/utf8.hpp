// Whether text is well-formed UTF-8 (table 3-7 of the Unicode standard).
#pragma once

#include <cstddef>
#include <cstdint>

// A word for each byte: six bits for each state say which state the byte leads to. A state is the position of its bits.
// It says what may come next: any character; nothing, the text is refused; one to three more bytes of a character; two
// or three of which the first has a smaller range.
struct Utf8Steps {
    enum State { CHARACTER, REFUSED, ONE, TWO, THREE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, STATES };
    static constexpr int BITS = 6;
    static constexpr uint64_t MASK = 63;
    uint64_t next[256] = {};

    constexpr Utf8Steps() {
        for (int byte = 0; byte < 256; byte++)
            for (int state = 0; state < STATES; state++)
                next[byte] |= (uint64_t) (step((State) state, byte) * BITS) << (state * BITS);
    }

    static constexpr bool within(int byte, int first, int last) { return first <= byte && byte <= last; }

    static constexpr State step(State state, int byte) {
        switch (state) {
            case CHARACTER:
                if (byte <= 0x7F) return CHARACTER;
                if (within(byte, 0xC2, 0xDF)) return ONE;
                if (byte == 0xE0) return AFTER_E0;
                if (byte == 0xED) return AFTER_ED;
                if (within(byte, 0xE1, 0xEF)) return TWO;
                if (byte == 0xF0) return AFTER_F0;
                if (within(byte, 0xF1, 0xF3)) return THREE;
                return byte == 0xF4 ? AFTER_F4 : REFUSED;
            case ONE: return within(byte, 0x80, 0xBF) ? CHARACTER : REFUSED;
            case TWO: return within(byte, 0x80, 0xBF) ? ONE : REFUSED;
            case THREE: return within(byte, 0x80, 0xBF) ? TWO : REFUSED;
            case AFTER_E0: return within(byte, 0xA0, 0xBF) ? ONE : REFUSED;
            case AFTER_ED: return within(byte, 0x80, 0x9F) ? ONE : REFUSED;
            case AFTER_F0: return within(byte, 0x90, 0xBF) ? TWO : REFUSED;
            case AFTER_F4: return within(byte, 0x80, 0x8F) ? TWO : REFUSED;
            default: return REFUSED;
        }
    }
};

static constexpr Utf8Steps UTF8_STEPS;

// No branches: text in several languages would be hard to predict.
static inline bool is_utf8(const uint8_t* p, ptrdiff_t size) {
    uint64_t state = 0;
    for (ptrdiff_t i = 0; i < size; i++) state = UTF8_STEPS.next[p[i]] >> (state & Utf8Steps::MASK);
    return (state & Utf8Steps::MASK) == Utf8Steps::CHARACTER * Utf8Steps::BITS;
}
