// Checks whether text is well-formed UTF-8 (table 3-7 of the Unicode standard).
#pragma once

#include <cstddef>
#include <cstdint>

// A state machine that reads one byte a step. `next[byte]` has, for each state, the state after the byte: BITS bits at
// the offset `state * BITS`. A state is stored as this offset, so that a step is only a lookup and a shift.
struct Utf8Steps {
    enum State {
        CHARACTER,  // a character may begin here, or the text may end
        REFUSED,    // the text is not UTF-8
        ONE,        // one more byte of the character must follow
        TWO,        // two more bytes must follow
        THREE,      // three more bytes must follow
        AFTER_E0,   // two more bytes must follow, the first of which has a smaller range
        AFTER_ED,   // the same, with another range
        AFTER_F0,   // three more bytes must follow, the first of which has a smaller range
        AFTER_F4,   // the same, with another range
        STATES      // the number of states
    };
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

// Without branches, because the CPU would predict them badly for text in several languages.
static inline bool is_utf8(const uint8_t* p, ptrdiff_t size) {
    uint64_t state = 0;
    for (ptrdiff_t i = 0; i < size; i++) state = UTF8_STEPS.next[p[i]] >> (state & Utf8Steps::MASK);
    return (state & Utf8Steps::MASK) == Utf8Steps::CHARACTER * Utf8Steps::BITS;
}
