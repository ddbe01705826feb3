// Reads the fields that ask for text of a grammar.
#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/request_fields.hpp"
#include "runtime/guide/limits.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace troupe::dialects {

using guide::Grammar;
using guide::GrammarKind;

namespace {

// A schema as an object, or as a text that holds one.
std::optional<Grammar> schema_of(JsonFields& fields, std::string_view name, const json& given) {
  if (given.is_string()) return Grammar{GrammarKind::kJsonSchema, given.get<std::string>()};
  if (given.is_object() || given.is_boolean())
    return Grammar{GrammarKind::kJsonSchema, json_text(given)};
  fields.complain(name, "must be a JSON schema");
  return std::nullopt;
}

std::optional<Grammar> any_object() {
  return Grammar{GrammarKind::kJsonSchema, R"({"type":"object"})"};
}

std::optional<Grammar> text_of(JsonFields& fields,
                               std::string_view name,
                               const json& given,
                               GrammarKind kind) {
  if (given.is_string()) return Grammar{kind, given.get<std::string>()};
  fields.complain(name, "must be a string");
  return std::nullopt;
}

// One of the texts of a list, as a grammar.
std::optional<Grammar> choice_of(JsonFields& fields, std::string_view name, const json& given) {
  const bool list = given.is_array() && !given.empty();
  if (!list || given.size() > guide::limits::kGuideChoices_max) {
    fields.complain(name, "must be a list of 1 to " +
                              std::to_string(guide::limits::kGuideChoices_max) + " texts");
    return std::nullopt;
  }
  std::string rule;
  for (const json& one : given) {
    if (!one.is_string()) {
      fields.complain(name, "must be a list of texts");
      return std::nullopt;
    }
    rule += (rule.empty() ? "start: " : " | ") + json_text(one);
  }
  return Grammar{GrammarKind::kLark, rule};
}

std::optional<Grammar> grammar_of(JsonFields& fields, std::string_view name, const json& given) {
  auto grammar = text_of(fields, name, given, GrammarKind::kLark);
  if (grammar && grammar->text.find("::=") != std::string::npos) {
    fields.complain(name,
                    "is written with '::='; this server reads Lark's form, as 'start: \"a\"'");
    return std::nullopt;
  }
  return grammar;
}

std::optional<Grammar> format_of(JsonFields& fields, const json& given) {
  constexpr std::string_view kName = "response_format";
  const json type = given.is_object() ? given.value("type", json()) : json();
  if (type == json("text")) return std::nullopt;
  if (type == json("json_object")) return any_object();
  if (type != json("json_schema")) {
    fields.complain(kName, "must be an object of the type text, json_object or json_schema");
    return std::nullopt;
  }
  const json inner = given.value("json_schema", json());
  if (!inner.is_object() || !inner.contains("schema") || inner["schema"].is_null()) {
    fields.complain(kName, "of type json_schema must have json_schema with a schema");
    return std::nullopt;
  }
  return schema_of(fields, kName, inner["schema"]);
}

// What one field asks for; nothing also where it is off or after an error.
std::optional<Grammar> read_one(JsonFields& fields, std::string_view name, const json& given) {
  if (name == "response_format") return format_of(fields, given);
  if (name == "guided_json" || name == "json") return schema_of(fields, name, given);
  if (name == "guided_regex" || name == "regex")
    return text_of(fields, name, given, GrammarKind::kRegex);
  if (name == "guided_choice" || name == "choice") return choice_of(fields, name, given);
  if (name == "guided_grammar" || name == "grammar") return grammar_of(fields, name, given);
  if (given.is_boolean()) return given.get<bool>() ? any_object() : std::nullopt;  // json_object
  fields.complain(name, "must be true or false");
  return std::nullopt;
}

void read_these(JsonFields& fields,
                std::initializer_list<std::string_view> names,
                const std::string& where,
                GenerateRequest& out) {
  for (const std::string_view name : names) {
    const json* const given = fields.find(name);
    if (given == nullptr || (given->is_string() && given->get_ref<const std::string&>().empty()))
      continue;
    auto grammar = read_one(fields, name, *given);
    if (!grammar) continue;
    if (out.grammar) fields.complain(name, "does not go with '" + out.grammar_field + "'");
    out.grammar = std::move(grammar);
    out.grammar_field = where + std::string(name);
  }
}

}  // namespace

void read_guide(JsonFields& fields, GenerateRequest& out) {
  read_these(fields,
             {"response_format", "guided_json", "guided_regex", "guided_choice", "guided_grammar"},
             "", out);
  fields.ignore({"guided_decoding_backend"});
  fields.unsupported({"guided_whitespace_pattern", "structural_tag"});
  const json* const outputs = fields.find("structured_outputs");
  if (outputs == nullptr) return;
  if (!outputs->is_object()) return fields.complain("structured_outputs", "must be an object");
  JsonFields inner(*outputs, "structured_outputs.");
  read_these(inner, {"json", "regex", "choice", "grammar", "json_object"}, "structured_outputs.",
             out);
  inner.ignore({"disable_fallback", "backend", "_backend", "_backend_was_auto"});
  for (const char* const name : {"whitespace_pattern", "structural_tag", "disable_any_whitespace",
                                 "disable_additional_properties"}) {
    const json* const value = inner.find(name);
    if (value != nullptr && *value != json(false))
      inner.complain(name, "is not supported by this server");
  }
  inner.end();
  fields.take_over(inner);
}

}  // namespace troupe::dialects
