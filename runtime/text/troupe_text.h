/* C interface of the Rust library `troupe_text`: Hugging Face tokenizers and chat templates.
 *
 * Only the C++ classes in this folder include this header; the rest of Troupe uses those classes.
 * No call waits or starts a thread, and only strftime_now may read a file: the system's time zone.
 * Many threads may use a tokenizer or template handle at once; a stream handle belongs to one
 * thread at a time. Text is UTF-8 without a terminator.
 *
 * Every fallible call returns a troupe_text_status. On failure the outputs are untouched and, if
 * `error` is not NULL, *error holds a message for the user (free it with troupe_text_string_free).
 * A panic in such a call is returned as TROUPE_TEXT_INTERNAL. */
#ifndef TROUPE_TEXT_H
#define TROUPE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum troupe_text_status {
  TROUPE_TEXT_OK = 0,
  TROUPE_TEXT_INVALID = 1,  /* malformed file, JSON, UTF-8 or argument */
  TROUPE_TEXT_LIMIT = 2,    /* more than troupe_text_limits or troupe_text_tokenizer_limits */
  TROUPE_TEXT_SYNTAX = 3,   /* a template does not parse */
  TROUPE_TEXT_FAILED = 4,   /* a template failed while it ran (type error, undefined value) */
  TROUPE_TEXT_RAISED = 5,   /* a template called raise_exception: its message is the error */
  TROUPE_TEXT_INTERNAL = 6  /* a bug in the library */
} troupe_text_status;

/* Borrowed text. `data` may be NULL when `size` is 0. */
typedef struct troupe_text_view {
  const char* data;
  size_t size;
} troupe_text_view;

/* Text owned by the library. `data` is never NULL after success. */
typedef struct troupe_text_string {
  char* data;
  size_t size;
} troupe_text_string;

/* Frees a string that a call filled in and sets *string to empty. Ignores an empty one. */
void troupe_text_string_free(troupe_text_string* string);

/* ---- tokenizer ------------------------------------------------------------------------------ */

typedef struct troupe_text_tokenizer troupe_text_tokenizer;

/* ids[i] covers bytes [offsets[2i], offsets[2i+1]) of the text; a token that the post-processor
 * added covers [0, 0). Owned by the library. */
typedef struct troupe_text_encoding {
  uint32_t* ids;
  uint64_t* offsets;
  size_t size;
} troupe_text_encoding;

/* Bounds of what the steps of a tokenizer.json may make of a text. Memory while a text is encoded
 * stays below about 200 bytes per byte of the larger of text_bytes and 16 times the text. */
typedef struct troupe_text_tokenizer_limits {
  uint64_t growth;        /* how many times as long the steps together may make a text */
  uint64_t text_bytes;    /* what they may make of a text of less than a sixteenth of this */
  uint64_t decoded_bytes; /* the longest text of ids */
  uint64_t literal_bytes; /* the longest replacement, prefix or token */
  uint64_t steps;         /* normalizers; pre-tokenizers; post-processors; decoders */
  uint64_t special_ids;   /* ids that post-processors add to a text */
} troupe_text_tokenizer_limits;

/* Reads the bytes of a tokenizer.json. Ignores its truncation and padding settings, because the
 * caller decides what to cut. Invalid bytes give an error, never a crash. The limits hold while it
 * is read, and for every later call with the tokenizer. */
troupe_text_status troupe_text_tokenizer_new(troupe_text_view json,
                                             const troupe_text_tokenizer_limits* limits,
                                             troupe_text_tokenizer** out,
                                             troupe_text_string* error);
void troupe_text_tokenizer_free(troupe_text_tokenizer* tokenizer);

/* `add_special`: let the post-processor add BOS, EOS and the like. */
troupe_text_status troupe_text_encode(const troupe_text_tokenizer* tokenizer,
                                      troupe_text_view text,
                                      int add_special,
                                      troupe_text_encoding* out,
                                      troupe_text_string* error);

/* Frees the result of an encode call and sets *encoding to empty. */
void troupe_text_encoding_free(troupe_text_encoding* encoding);

/* Skips unknown ids; bytes that are not UTF-8 become U+FFFD. */
troupe_text_status troupe_text_decode(const troupe_text_tokenizer* tokenizer, const uint32_t* ids,
                                      size_t count, int skip_special, troupe_text_string* out,
                                      troupe_text_string* error);

/* The token's own spelling (in a byte-level vocabulary, its printable alphabet). Returns 1 if the
 * id exists, else 0 and leaves *out untouched. */
int troupe_text_id_to_token(const troupe_text_tokenizer* tokenizer, uint32_t id,
                            troupe_text_string* out);

/* The bytes that the token adds to a text: of an added token its text, else what the piece spells,
 * which may be a part of a character. Returns 1 if the id exists, else 0 and leaves *out untouched.
 */
int troupe_text_token_bytes(const troupe_text_tokenizer* tokenizer,
                            uint32_t id,
                            troupe_text_string* out);

/* Returns 1 and sets *id if the token exists, else 0. */
int troupe_text_token_to_id(const troupe_text_tokenizer* tokenizer, troupe_text_view token,
                            uint32_t* id);

/* 1 if the id is an added token marked special, else 0. */
int troupe_text_is_special(const troupe_text_tokenizer* tokenizer, uint32_t id);

/* One more than the largest id; above the vocabulary's size where ids have gaps. */
size_t troupe_text_id_limit(const troupe_text_tokenizer* tokenizer);

/* ---- streaming decoder ---------------------------------------------------------------------- */

typedef struct troupe_text_stream troupe_text_stream;

/* Decodes one sequence id by id. The tokenizer must outlive the stream. A stream holds at most 17
 * ids and their text, however long the sequence grows. */
troupe_text_stream* troupe_text_stream_new(const troupe_text_tokenizer* tokenizer, int skip_special);
void troupe_text_stream_free(troupe_text_stream* stream);

/* *out is the text that this id made final; empty while a character's bytes are incomplete. */
troupe_text_status troupe_text_stream_push(troupe_text_stream* stream, uint32_t id,
                                           troupe_text_string* out, troupe_text_string* error);

/* *out is the text that was held back (U+FFFD for an incomplete character). Resets the stream. */
troupe_text_status troupe_text_stream_finish(troupe_text_stream* stream, troupe_text_string* out,
                                             troupe_text_string* error);

/* ---- chat template -------------------------------------------------------------------------- */

typedef struct troupe_text_template troupe_text_template;

/* Bounds of one rendering; each must be above 0. Memory stays below about 128 bytes per unit of
 * fuel, and the native stack below 1 MiB at depth 64. */
typedef struct troupe_text_limits {
  uint64_t fuel;             /* units of work: a step, a visited item, or 32 bytes of text each */
  uint64_t depth;            /* nested macro calls and recursive loops; nesting of values;
                                16 times this for nested syntax */
  uint64_t output_bytes;     /* the longest text that a template may build: result or value */
} troupe_text_limits;

/* Parses a Jinja template with the whitespace rules of transformers (trim_blocks, lstrip_blocks).
 * The source may have at most 1 MiB, 2048 tokens in one tag, and 512 `elif`. */
troupe_text_status troupe_text_template_new(troupe_text_view source, troupe_text_template** out,
                                            troupe_text_string* error);
void troupe_text_template_free(troupe_text_template* chat_template);

typedef struct troupe_text_render {
  troupe_text_view messages_json;  /* an array of objects */
  troupe_text_view tools_json;     /* an array; empty text means none */
  troupe_text_view variables_json; /* an object: bos_token, eos_token and further variables; empty
                                      text means none. May not name messages, tools, documents or
                                      add_generation_prompt. */
  int add_generation_prompt;
  int64_t now_unix_s;              /* the time for strftime_now, in the local time zone */
} troupe_text_render;

troupe_text_status troupe_text_template_render(const troupe_text_template* chat_template,
                                               const troupe_text_render* request,
                                               const troupe_text_limits* limits,
                                               troupe_text_string* out, troupe_text_string* error);

#ifdef __cplusplus
}
#endif

#endif
