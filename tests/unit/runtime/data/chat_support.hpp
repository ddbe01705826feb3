// A chat template and its end token, for tests of rows of messages.
#pragma once

#include "runtime/text/special_tokens.hpp"

namespace troupe::data {

inline constexpr const char* kChat =
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}<|end|>{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}";

inline text::SpecialTokens with_end(const char* end) {
  text::SpecialTokens special;
  special.eos = end;
  return special;
}

}  // namespace troupe::data
