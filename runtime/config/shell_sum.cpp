#include "runtime/config/shell_sum.hpp"

#include <cctype>
#include <charconv>

namespace troupe::config {
namespace {

using SumValue = std::optional<std::int64_t>;
using SumName = std::function<SumValue(std::string_view)>;

constexpr int kBrackets_max = 32;

class Sum {
 public:
  Sum(std::string_view text, const SumName& name) : text_(text), name_(name) {}

  SumValue all() {
    const SumValue value = terms(0);
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
      ++at_;
  }
  bool takes(char sign) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }

  static SumValue joined_by(char sign, SumValue a, SumValue b) {
    std::int64_t out = 0;
    if (!a || !b) return std::nullopt;
    if (sign == '+') return __builtin_add_overflow(*a, *b, &out) ? SumValue() : out;
    if (sign == '-') return __builtin_sub_overflow(*a, *b, &out) ? SumValue() : out;
    if (sign == '*') return __builtin_mul_overflow(*a, *b, &out) ? SumValue() : out;
    if (*b == 0 || *b == -1) return *b == 0 || sign == '%' ? SumValue() : joined_by('-', 0, a);
    return sign == '/' ? *a / *b : *a % *b;
  }

  SumValue terms(int depth) {
    SumValue value = factors(depth);
    while (value) {
      if (takes('+')) {
        value = joined_by('+', value, factors(depth));
      } else if (takes('-')) {
        value = joined_by('-', value, factors(depth));
      } else {
        break;
      }
    }
    return value;
  }

  SumValue factors(int depth) {
    SumValue value = single(depth);
    while (value) {
      if (takes('*')) {
        value = joined_by('*', value, single(depth));
      } else if (takes('/')) {
        value = joined_by('/', value, single(depth));
      } else if (takes('%')) {
        value = joined_by('%', value, single(depth));
      } else {
        break;
      }
    }
    return value;
  }

  SumValue single(int depth) {
    if (depth > kBrackets_max) return std::nullopt;
    if (takes('-')) return joined_by('-', 0, single(depth + 1));
    if (takes('(')) {
      const SumValue value = terms(depth + 1);
      return takes(')') ? value : std::nullopt;
    }
    skip_blanks();
    const std::size_t begin = at_;
    const auto of_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    while (at_ < text_.size() && of_word(text_[at_]))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) return name_(word);
    std::int64_t value = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
    return read.ec == std::errc() && read.ptr == word.data() + word.size() ? SumValue(value)
                                                                           : std::nullopt;
  }

  std::string_view text_;
  const SumName& name_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_sum(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(std::string_view)>& name) {
  return Sum(text, name).all();
}

}  // namespace troupe::config
