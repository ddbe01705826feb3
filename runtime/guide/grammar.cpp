#include "runtime/guide/grammar.hpp"

#include "runtime/guide/limits.hpp"
#include "runtime/guide/schema_check.hpp"

#include <algorithm>

namespace troupe::guide {
namespace {

struct Extent {
  std::size_t depth = 0;   // of brackets within one another
  std::size_t colons = 0;  // members of a JSON text
};

constexpr std::string_view prefix_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json_schema:";
    case GrammarKind::kRegex:
      return "regex:";
    case GrammarKind::kLark:
      break;
  }
  return "lark:";
}

// What lies in quotes or behind a backslash is left out.
Extent extent_of(std::string_view text, bool has_quotes) {
  std::size_t depth = 0, deepest = 0, colons = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (has_quotes && (c == '"' || (quoted && c == '\n'))) {
      quoted = c == '"' && !quoted;
    } else if (!quoted && (c == '(' || c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!quoted && (c == ')' || c == ']' || c == '}') && depth > 0) {
      --depth;
    } else if (!quoted && c == ':') {
      ++colons;
    }
  }
  return {deepest, colons};
}

core::Failure too_much(const Grammar& grammar,
                       const char* what,
                       std::size_t has,
                       std::uint64_t most) {
  return core::fail(core::ErrorCode::kResources,
                    std::string("the ") + name_of(grammar.kind) + " has " + std::to_string(has) +
                        " " + what + " and at most " + std::to_string(most) + " are taken",
                    "ask for less at a time");
}

}  // namespace

const char* name_of(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "JSON schema";
    case GrammarKind::kRegex:
      return "regular expression";
    case GrammarKind::kLark:
      break;
  }
  return "grammar";
}

core::Result<void> check_grammar(const Grammar& grammar) {
  if (grammar.text.size() > limits::kGuideGrammar_bytes_max)
    return too_much(grammar, "bytes", grammar.text.size(), limits::kGuideGrammar_bytes_max);
  const Extent extent = extent_of(grammar.text, grammar.kind != GrammarKind::kRegex);
  if (extent.depth > limits::kGuideNesting_max) {
    return too_much(grammar, "brackets within one another", extent.depth,
                    limits::kGuideNesting_max);
  }
  if (grammar.kind == GrammarKind::kJsonSchema && extent.colons > limits::kGuideMembers_max)
    return too_much(grammar, "members", extent.colons, limits::kGuideMembers_max);
  if (grammar.kind == GrammarKind::kJsonSchema) return check_schema(grammar.text);
  return {};
}

std::string text_of(const Grammar& grammar) {
  return std::string(prefix_of(grammar.kind)) + grammar.text;
}

core::Result<Grammar> grammar_of(std::string_view text) {
  for (const GrammarKind kind :
       {GrammarKind::kJsonSchema, GrammarKind::kRegex, GrammarKind::kLark}) {
    const std::string_view prefix = prefix_of(kind);
    if (text.starts_with(prefix)) return Grammar{kind, std::string(text.substr(prefix.size()))};
  }
  return core::fail(core::ErrorCode::kInvalidArgument, "the grammar is of no known kind");
}

}  // namespace troupe::guide
