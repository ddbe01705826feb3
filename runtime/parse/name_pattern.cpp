#include "runtime/parse/name_pattern.hpp"

#include "runtime/parse/name_pattern_syntax.hpp"

#include <optional>
#include <string>

namespace troupe::parse {
namespace {

using Code = NamePattern::Code;
using Kind = PatternNode::Kind;
using Op = NamePattern::Op;

// Makes the program from its end to its beginning: each part knows where what follows begins.
class Compiler {
 public:
  // Where the part begins; nothing once the program is too large.
  std::uint32_t put(const PatternNode& node, std::uint32_t then) {
    if (is_full()) return then;
    switch (node.kind) {
      case Kind::kSet:
        sets.push_back(node.set);
        return add({Code::kOne, static_cast<std::uint32_t>(sets.size() - 1), then});
      case Kind::kSequence:
        for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part)
          then = put(*part, then);
        return then;
      case Kind::kChoice: {
        std::uint32_t begin = put(node.parts.back(), then);
        for (auto part = node.parts.rbegin() + 1; part != node.parts.rend(); ++part)
          begin = add({Code::kSplit, put(*part, then), begin});
        return begin;
      }
      case Kind::kRepeat:
        return put_repeat(node, then);
      case Kind::kBegin:
        return add({Code::kBegin, 0, then});
      case Kind::kEnd:
        return add({Code::kEnd, 0, then});
      case Kind::kWordEdge:
        return add({Code::kWordEdge, 0, then});
      case Kind::kNoWordEdge:
        return add({Code::kNoWordEdge, 0, then});
      case Kind::kAhead:
      case Kind::kNotAhead: {
        const std::uint32_t inside = put(node.parts.front(), add({Code::kAccept, 0, 0}));
        return add({node.kind == Kind::kAhead ? Code::kAhead : Code::kNotAhead, inside, then});
      }
    }
    return then;
  }

  std::uint32_t add(Op op) {
    ops.push_back(op);
    return static_cast<std::uint32_t>(ops.size() - 1);
  }
  bool is_full() const { return ops.size() > NamePattern::kOps_max; }

  std::vector<Op> ops;
  std::vector<NamePattern::Set> sets;

 private:
  std::uint32_t put_repeat(const PatternNode& node, std::uint32_t then) {
    const PatternNode& part = node.parts.front();
    std::uint32_t begin = then;
    if (node.most == PatternNode::kNoEnd) {
      begin = add({Code::kSplit, 0, then});
      const std::uint32_t body = put(part, begin);
      ops[begin].x = body;
    } else {
      for (std::uint32_t i = node.least; i < node.most && !is_full(); ++i)
        begin = add({Code::kSplit, put(part, begin), then});
    }
    for (std::uint32_t i = 0; i < node.least && !is_full(); ++i)
      begin = put(part, begin);
    return begin;
  }
};

bool is_word_at(std::string_view name, std::size_t at) {
  if (at >= name.size()) return false;
  const char c = name[at];
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Tries each place of the program at each place of the name once.
class Search {
 public:
  Search(const std::vector<Op>& ops,
         const std::vector<NamePattern::Set>& sets,
         std::string_view name)
      : ops_(ops), sets_(sets), name_(name), known_(ops.size() * (name.size() + 1)) {}

  bool is_over() const { return steps_ > NamePattern::kSteps_max; }

  bool found(std::uint32_t begin, std::size_t from) {
    std::vector<bool> seen(ops_.size() * (name_.size() + 1));
    steps_ += seen.size() / 64;
    std::vector<std::pair<std::uint32_t, std::size_t>> open = {{begin, from}};
    while (!open.empty() && !is_over()) {
      const auto [place, at] = open.back();
      open.pop_back();
      if (seen[place_of(place, at)]) continue;
      seen[place_of(place, at)] = true;
      ++steps_;
      const Op& op = ops_[place];
      switch (op.code) {
        case Code::kOne:
          if (at < name_.size() && has(op.x, name_[at])) open.emplace_back(op.y, at + 1);
          break;
        case Code::kSplit:
          open.emplace_back(op.x, at);
          open.emplace_back(op.y, at);
          break;
        case Code::kBegin:
          if (at == 0) open.emplace_back(op.y, at);
          break;
        case Code::kEnd:
          if (is_end(at)) open.emplace_back(op.y, at);
          break;
        case Code::kWordEdge:
        case Code::kNoWordEdge:
          if (is_edge(at) == (op.code == Code::kWordEdge)) open.emplace_back(op.y, at);
          break;
        case Code::kAhead:
        case Code::kNotAhead:
          if (is_ahead(op.x, at) == (op.code == Code::kAhead)) open.emplace_back(op.y, at);
          break;
        case Code::kAccept:
          return true;
        case Code::kFull:
          if (at == name_.size()) return true;
          break;
      }
    }
    return false;
  }

 private:
  std::size_t place_of(std::uint32_t place, std::size_t at) const {
    return at * ops_.size() + place;
  }
  bool has(std::uint32_t set, char c) const {
    const auto value = static_cast<unsigned char>(c);
    return value < sets_[set].size() && sets_[set][value];
  }
  // Python's $ also matches before a line end that ends the text.
  bool is_end(std::size_t at) const {
    return at == name_.size() || (at + 1 == name_.size() && name_[at] == '\n');
  }
  bool is_edge(std::size_t at) const {
    return (at > 0 && is_word_at(name_, at - 1)) != is_word_at(name_, at);
  }
  bool is_ahead(std::uint32_t begin, std::size_t at) {
    auto& known = known_[place_of(begin, at)];
    if (!known) known = found(begin, at);
    return *known;
  }

  const std::vector<Op>& ops_;
  const std::vector<NamePattern::Set>& sets_;
  const std::string_view name_;
  std::vector<std::optional<bool>> known_;  // of look-aheads
  std::uint64_t steps_ = 0;
};

}  // namespace

core::Result<NamePattern> NamePattern::compile(std::string_view pattern) {
  TROUPE_TRY_ASSIGN(tree, parse_pattern(pattern));
  Compiler compiler;
  const std::uint32_t full = compiler.add({Code::kFull, 0, 0});
  NamePattern out;
  out.begin_ = compiler.put(tree, full);
  if (compiler.is_full()) {
    return core::fail(core::ErrorCode::kData,
                      "its quantifiers ask for more than " + std::to_string(kOps_max) + " parts");
  }
  out.ops_ = std::move(compiler.ops);
  out.sets_ = std::move(compiler.sets);
  return out;
}

core::Result<bool> NamePattern::matches(std::string_view name) const {
  Search search(ops_, sets_, name);
  const bool found = search.found(begin_, 0);
  if (search.is_over()) {
    return core::fail(core::ErrorCode::kData,
                      "a match takes more than " + std::to_string(kSteps_max) + " steps");
  }
  return found;
}

}  // namespace troupe::parse
