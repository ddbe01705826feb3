#include "runtime/parse/name_pattern_syntax.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace troupe::parse {
namespace {

using Kind = PatternNode::Kind;
using Set = NamePattern::Set;

constexpr std::uint32_t kBeyond = 128;  // stands for every character that is not ASCII
constexpr std::uint32_t kRepeats_max = 1000;

core::Failure bad(const std::string& why) {
  return core::fail(core::ErrorCode::kData, why);
}
core::Failure not_evaluated(const std::string& what) {
  return bad(what + " is not evaluated here");
}

template <class Is>
Set set_where(Is is) {
  Set set;
  for (std::size_t c = 0; c < set.size(); ++c)
    set[c] = is(static_cast<char>(c));
  return set;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_digit(c) || is_letter(c) || c == '_';
}
// As Python's str.isspace has it.
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

// Whether it stands for a place between characters.
bool is_place(Kind kind) {
  return kind == Kind::kBegin || kind == Kind::kEnd || kind == Kind::kWordEdge ||
         kind == Kind::kNoWordEdge;
}

class Syntax {
 public:
  explicit Syntax(std::string_view text) : rest_(text) {}

  Result<PatternNode> all() {
    TROUPE_TRY(flags());
    TROUPE_TRY_ASSIGN(node, choice());
    if (!rest_.empty()) return bad("a ) that nothing opens");
    return node;
  }

 private:
  bool take(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    rest_.remove_prefix(words.size());
    return true;
  }

  // One character; kBeyond for one that is not ASCII.
  std::uint32_t next() {
    const auto first = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    if (first < kBeyond) return first;
    has_beyond_ = true;
    while (!rest_.empty() && (static_cast<unsigned char>(rest_.front()) & 0xC0) == 0x80)
      rest_.remove_prefix(1);
    return kBeyond;
  }

  // (?i) and the like, which Python takes at the beginning only.
  Result<void> flags() {
    while (rest_.starts_with("(?")) {
      const auto end = rest_.find_first_not_of("aimsu", 2);
      if (end == rest_.npos || end == 2 || rest_[end] != ')') return {};
      for (const char flag : rest_.substr(2, end - 2)) {
        any_case_ = any_case_ || flag == 'i';
        dot_all_ = dot_all_ || flag == 's';
      }
      rest_.remove_prefix(end + 1);
    }
    return {};
  }

  Result<PatternNode> choice() {
    if (++depth_ > NamePattern::kDepth_max) return bad("it is nested too deeply");
    PatternNode node{.kind = Kind::kChoice};
    do {
      TROUPE_TRY_ASSIGN(one, sequence());
      node.parts.push_back(std::move(one));
    } while (take("|"));
    --depth_;
    return node;
  }

  Result<PatternNode> sequence() {
    PatternNode node{.kind = Kind::kSequence};
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      TROUPE_TRY_ASSIGN(one, atom());
      TROUPE_TRY_ASSIGN(times, repeats());
      if (!times) {
        node.parts.push_back(std::move(one));
        continue;
      }
      if (is_place(one.kind)) return bad("nothing to repeat");
      if (take("+")) return not_evaluated("a possessive quantifier");
      take("?");  // a lazy one: the same names match
      TROUPE_TRY_ASSIGN(again, repeats());
      if (again) return bad("a quantifier after another");
      times->parts.push_back(std::move(one));
      node.parts.push_back(std::move(*times));
    }
    return node;
  }

  Result<std::optional<PatternNode>> repeats() {
    PatternNode node{.kind = Kind::kRepeat};
    if (take("*")) {
      node.most = PatternNode::kNoEnd;
    } else if (take("+")) {
      node.least = 1;
      node.most = PatternNode::kNoEnd;
    } else if (take("?")) {
      node.most = 1;
    } else {
      return counted();
    }
    return std::optional(std::move(node));
  }

  // {2}, {2,}, {,4}, {2,4}; anything else is the text that it is.
  Result<std::optional<PatternNode>> counted() {
    const std::string_view before = rest_;
    if (!take("{") || rest_.starts_with("}")) {
      rest_ = before;
      return std::optional<PatternNode>();
    }
    const std::string_view low = digits();
    const bool two = take(",");
    const std::string_view high = two ? digits() : low;
    if (!take("}")) {
      rest_ = before;
      return std::optional<PatternNode>();
    }
    PatternNode node{.kind = Kind::kRepeat};
    TROUPE_TRY_SET(node.least, count_of(low, 0));
    TROUPE_TRY_SET(node.most, count_of(high, PatternNode::kNoEnd));
    if (node.most < node.least) return bad("a quantifier whose least is above its most");
    return std::optional(std::move(node));
  }
  std::string_view digits() {
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const std::string_view own = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return own;
  }
  static Result<std::uint32_t> count_of(std::string_view digits, std::uint32_t otherwise) {
    if (digits.empty()) return otherwise;
    std::uint32_t count = 0;
    for (const char digit : digits) {
      count = 10 * count + static_cast<std::uint32_t>(digit - '0');
      if (count > kRepeats_max) return bad("a quantifier above " + std::to_string(kRepeats_max));
    }
    return count;
  }

  Result<PatternNode> atom() {
    if (take("(")) return group();
    if (take("[")) return set_of_brackets();
    if (take("^")) return PatternNode{.kind = Kind::kBegin};
    if (take("$")) return PatternNode{.kind = Kind::kEnd};
    if (take(".")) return of(set_where([this](char c) { return dot_all_ || c != '\n'; }));
    if (take("\\")) return escape();
    TROUPE_TRY_ASSIGN(times, repeats());
    if (times) return bad("nothing to repeat");
    return of(one(next()));
  }

  Result<PatternNode> group() {
    Kind look = Kind::kChoice;  // none
    if (take("?")) {
      if (take("P<")) {
        const auto end = rest_.find('>');
        if (end == rest_.npos) return bad("a group whose name has no end");
        rest_.remove_prefix(end + 1);
      } else if (take("=")) {
        look = Kind::kAhead;
      } else if (take("!")) {
        look = Kind::kNotAhead;
      } else if (rest_.starts_with("<")) {
        return not_evaluated("a look-behind, (?<...)");
      } else if (!take(":")) {
        return not_evaluated("a group that begins with (?" + std::string(rest_.substr(0, 1)));
      }
    }
    TROUPE_TRY_ASSIGN(inside, choice());
    if (!take(")")) return bad("a ( that nothing closes");
    if (look == Kind::kChoice) return inside;
    PatternNode node{.kind = look};
    node.parts.push_back(std::move(inside));
    return node;
  }

  // Behind a backslash, outside of brackets.
  Result<PatternNode> escape() {
    if (rest_.empty()) return bad("a \\ at its end");
    if (take("b")) return PatternNode{.kind = Kind::kWordEdge};
    if (take("B")) return PatternNode{.kind = Kind::kNoWordEdge};
    if (take("A")) return PatternNode{.kind = Kind::kBegin};
    if (take("Z")) return PatternNode{.kind = Kind::kEnd};
    if (is_digit(rest_.front())) return not_evaluated("a back reference or octal number");
    if (const auto kind = kind_of_characters()) return of(*kind);
    TROUPE_TRY_ASSIGN(character, escaped());
    return of(one(character));
  }

  // \d, \w, \s and their opposites.
  std::optional<Set> kind_of_characters() {
    const char name = rest_.front();
    Set set;
    switch (name) {
      case 'd':
      case 'D':
        set = set_where(is_digit);
        break;
      case 'w':
      case 'W':
        set = set_where(is_word);
        break;
      case 's':
      case 'S':
        set = set_where(is_space);
        break;
      default:
        return std::nullopt;
    }
    rest_.remove_prefix(1);
    return name < 'a' ? ~set : set;
  }

  Result<std::uint32_t> escaped() {
    const std::uint32_t name = next();
    static constexpr std::string_view kNames = "ntrfva", kMean = "\n\t\r\f\v\a";
    if (name >= kBeyond) return name;
    const char c = static_cast<char>(name);
    if (const auto at = kNames.find(c); at != kNames.npos)
      return static_cast<std::uint32_t>(kMean[at]);
    if (c == 'x') return hexadecimal();
    if (is_letter(c) || is_digit(c)) return not_evaluated(std::string("the escape \\") + c);
    return name;
  }

  Result<std::uint32_t> hexadecimal() {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::uint32_t value = 0;
    for (int i = 0; i < 2; ++i) {
      const char c = rest_.empty() ? ' ' : rest_.front();
      const auto digit = kDigits.find(is_letter(c) ? static_cast<char>(c | 32) : c);
      if (digit == kDigits.npos) return bad("a \\x without two digits");
      value = 16 * value + static_cast<std::uint32_t>(digit);
      rest_.remove_prefix(1);
    }
    if (value >= kBeyond) has_beyond_ = true;
    return std::min(value, kBeyond);
  }

  Result<PatternNode> set_of_brackets() {
    const bool opposite = take("^");
    Set set;
    for (bool first = true; first || !rest_.starts_with("]"); first = false) {
      if (rest_.empty()) return bad("a [ that nothing closes");
      std::optional<Set> whole;
      TROUPE_TRY_ASSIGN(low, member(whole));
      if (whole) {
        set |= *whole;
        continue;
      }
      std::uint32_t high = low;
      if (rest_.starts_with("-") && rest_.size() > 1 && rest_[1] != ']') {
        rest_.remove_prefix(1);
        TROUPE_TRY_SET(high, member(whole));
        if (whole || high < low) return bad("a range in [] without an order");
      }
      for (std::uint32_t c = low; c <= high && c < kBeyond; ++c)
        set |= one(c);
    }
    rest_.remove_prefix(1);
    return of(opposite ? ~set : set);
  }

  // A character inside of brackets, or several (`whole`).
  Result<std::uint32_t> member(std::optional<Set>& whole) {
    if (!take("\\")) return next();
    if (rest_.empty()) return bad("a [ that nothing closes");
    if (take("b")) return std::uint32_t{'\b'};
    if (const auto kind = kind_of_characters()) {
      whole = *kind;
      return std::uint32_t{0};
    }
    return escaped();
  }

  Set one(std::uint32_t c) const {
    Set set;
    if (c >= kBeyond) return set;
    set.set(c);
    if (any_case_ && is_letter(static_cast<char>(c))) set.set(c ^ 32);
    return set;
  }
  Result<PatternNode> of(const Set& set) const {
    // Some of them have an ASCII letter as their other case.
    if (any_case_ && has_beyond_) return not_evaluated("(?i) with characters beyond ASCII");
    return PatternNode{.kind = Kind::kSet, .set = set};
  }

  std::string_view rest_;
  bool any_case_ = false, dot_all_ = false, has_beyond_ = false;
  std::size_t depth_ = 0;
};

}  // namespace

Result<PatternNode> parse_pattern(std::string_view pattern) {
  if (pattern.size() > NamePattern::kBytes_max)
    return bad("it has more than " + std::to_string(NamePattern::kBytes_max) + " bytes");
  return Syntax(pattern).all();
}

}  // namespace troupe::parse
