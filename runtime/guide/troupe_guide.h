/* C interface of libtroupe_guide.so: grammars over the tokens of a vocabulary, by the Rust crate
 * llguidance. The program opens the library at first use (library.hpp); its one named symbol is
 * `troupe_guide_entry`, a table of the functions below.
 *
 * Many threads may use a vocabulary at once; a matcher belongs to one thread at a time. Text is
 * UTF-8 without a terminator.
 *
 * Every fallible call returns a troupe_guide_status. On failure the outputs are untouched and, if
 * `error` is not NULL, *error holds a message for the user (free it with `string_free`). A panic in
 * such a call is returned as TROUPE_GUIDE_INTERNAL. */
#ifndef TROUPE_GUIDE_H
#define TROUPE_GUIDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header. */
#define TROUPE_GUIDE_ABI 1

typedef enum troupe_guide_status {
  TROUPE_GUIDE_OK = 0,
  TROUPE_GUIDE_INVALID = 1,  /* malformed tokenizer, grammar or argument; a token not allowed */
  TROUPE_GUIDE_LIMIT = 2,    /* one of troupe_guide_limits was exceeded; the message names it */
  TROUPE_GUIDE_INTERNAL = 3  /* a bug in the library */
} troupe_guide_status;

/* Borrowed text. `data` may be NULL when `size` is 0. */
typedef struct troupe_guide_view {
  const char* data;
  size_t size;
} troupe_guide_view;

/* Text owned by the library. */
typedef struct troupe_guide_string {
  char* data;
  size_t size;
} troupe_guide_string;

typedef enum troupe_guide_kind {
  TROUPE_GUIDE_JSON_SCHEMA = 0, /* a JSON schema */
  TROUPE_GUIDE_REGEX = 1,       /* a regular expression that the whole text matches */
  TROUPE_GUIDE_LARK = 2         /* a grammar in llguidance's variant of Lark's syntax */
} troupe_guide_kind;

/* Bounds of the work for one grammar, in llguidance's units (its ParserLimits). */
typedef struct troupe_guide_limits {
  uint64_t grammar_symbols; /* symbols in all productions */
  uint64_t compile_fuel;    /* work to build the lexer of a grammar */
  uint64_t mask_fuel;       /* work of the lexer for one mask */
  uint64_t mask_items;      /* items of the parser for one mask */
  uint64_t row_items;       /* items of the parser behind one byte */
  uint64_t lexer_states;
} troupe_guide_limits;

typedef struct troupe_guide_vocabulary troupe_guide_vocabulary;
typedef struct troupe_guide_matcher troupe_guide_matcher;

typedef struct troupe_guide_table {
  uint32_t abi; /* TROUPE_GUIDE_ABI */

  /* Reads the bytes of each token from a tokenizer.json with a byte-level decoder or one that falls
   * back to bytes. Ids below `size` are those of the model; those without a token, and special
   * tokens, match no text. */
  troupe_guide_status (*vocabulary_new)(troupe_guide_view tokenizer_json,
                                        uint32_t size,
                                        const troupe_guide_limits* limits,
                                        troupe_guide_vocabulary** out,
                                        troupe_guide_string* error);
  void (*vocabulary_free)(troupe_guide_vocabulary* vocabulary);

  /* Compiles a grammar to a matcher at its beginning. The matcher keeps what it needs of the
   * vocabulary. `whitespace` (may be empty): the regular expression of the space that a JSON schema
   * allows between its parts; a member "x-guidance" of the schema may override it. */
  troupe_guide_status (*matcher_new)(const troupe_guide_vocabulary* vocabulary,
                                     troupe_guide_kind kind,
                                     troupe_guide_view text,
                                     troupe_guide_view whitespace,
                                     troupe_guide_matcher** out,
                                     troupe_guide_string* error);
  /* A matcher of its own in the same state; what one computes never changes the other. */
  troupe_guide_status (*matcher_clone)(const troupe_guide_matcher* matcher,
                                       troupe_guide_matcher** out,
                                       troupe_guide_string* error);
  void (*matcher_free)(troupe_guide_matcher* matcher);

  /* Writes the tokens that may follow: token t is bit t % 32 of words[t / 32], and bits beyond the
   * vocabulary are 0. `count` words hold the vocabulary. *may_end: whether the text may end here.
   * No bits and no end: no text of the grammar can be completed with the vocabulary. */
  troupe_guide_status (*matcher_mask)(troupe_guide_matcher* matcher,
                                      uint32_t* words,
                                      size_t count,
                                      int32_t* may_end,
                                      troupe_guide_string* error);
  /* Takes a token of the latest mask. */
  troupe_guide_status (*matcher_take)(troupe_guide_matcher* matcher,
                                      uint32_t token,
                                      troupe_guide_string* error);

  /* Frees a string that a call filled in and sets *string to empty. Ignores an empty one. */
  void (*string_free)(troupe_guide_string* string);
} troupe_guide_table;

#ifdef __cplusplus
}
#endif

#endif
