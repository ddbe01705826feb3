// What the oracle tests of runtime/text drive: one JSON request a line on stdin, one JSON answer a
// line on stdout. An answer is {"ok": ...} or {"error": sentence, "code": name}. One thread, no
// state but the tokenizers loaded so far.
//
//   {"op": "encode", "folder": F, "text": T, "add_special": B}
//       -> {"ids": [...], "offsets": [[begin, end], ...]}
//   {"op": "decode" | "stream", "folder": F, "ids": [...], "skip_special": B} -> text
//   {"op": "tokens", "folder": F} -> {"size", "limit", "special": [ids]}
//   {"op": "render", "template": T | "folder": F, "messages": [...], "tools": [...],
//    "variables": {...}, "add_generation_prompt": B, "now": seconds} -> text; messages, tools and
//    variables may be texts of JSON
//   {"op": "bytes", "folder": F, "ids": [...]} -> [[bytes of an id] or null, ...]
#include "runtime/text/chat_template.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <map>
#include <string>

namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using troupe::core::Result;
namespace text = troupe::text;

std::map<std::string, text::Tokenizer>& loaded() {
  static std::map<std::string, text::Tokenizer> tokenizers;
  return tokenizers;
}

Result<text::Tokenizer> tokenizer_of(const ordered_json& request) {
  const auto folder = request.at("folder").get<std::string>();
  const auto known = loaded().find(folder);
  if (known != loaded().end()) return known->second;
  auto tokenizer = text::Tokenizer::load(folder);
  if (tokenizer) loaded().emplace(folder, *tokenizer);
  return tokenizer;
}

Result<ordered_json> encode(const ordered_json& request) {
  TROUPE_TRY_ASSIGN(tokenizer, tokenizer_of(request));
  text::EncodeOptions options;
  options.add_special = request.value("add_special", false);
  TROUPE_TRY_ASSIGN(encoding, tokenizer.encode(request.at("text").get<std::string>(), options));
  ordered_json offsets = ordered_json::array();
  for (const auto& span : encoding.offsets)
    offsets.push_back({span.begin, span.end});
  return ordered_json{{"ids", encoding.ids}, {"offsets", std::move(offsets)}};
}

Result<ordered_json> decode(const ordered_json& request) {
  TROUPE_TRY_ASSIGN(tokenizer, tokenizer_of(request));
  const auto ids = request.at("ids").get<std::vector<text::TokenId>>();
  TROUPE_TRY_ASSIGN(decoded, tokenizer.decode(ids, request.value("skip_special", false)));
  return ordered_json(decoded);
}

Result<ordered_json> stream(const ordered_json& request) {
  TROUPE_TRY_ASSIGN(tokenizer, tokenizer_of(request));
  text::StreamDecoder decoder(tokenizer, request.value("skip_special", false));
  std::string all;
  for (const auto id : request.at("ids").get<std::vector<text::TokenId>>()) {
    TROUPE_TRY_ASSIGN(piece, decoder.push(id));
    all += piece;
  }
  TROUPE_TRY_ASSIGN(rest, decoder.finish());
  return ordered_json(all + rest);
}

Result<ordered_json> tokens(const ordered_json& request) {
  TROUPE_TRY_ASSIGN(tokenizer, tokenizer_of(request));
  ordered_json special = ordered_json::array();
  std::size_t size = 0;
  for (std::size_t id = 0; id < tokenizer.id_limit(); ++id) {
    const auto token = static_cast<text::TokenId>(id);
    if (tokenizer.id_to_token(token)) ++size;
    if (tokenizer.is_special(token)) special.push_back(id);
  }
  return ordered_json{
      {"size", size}, {"limit", tokenizer.id_limit()}, {"special", std::move(special)}};
}

// JSON, or the text of JSON, whose numbers keep their spelling.
std::string json_text_of(const ordered_json& given) {
  return given.is_string() ? given.get<std::string>() : given.dump();
}

Result<ordered_json> render(const ordered_json& request) {
  auto chat =
      request.contains("folder")
          ? text::ChatTemplate::load(request.at("folder").get<std::string>())
          : text::ChatTemplate::parse(request.at("template").get<std::string>(), {}, "template");
  if (!chat) return chat.failure();
  text::RenderOptions options;
  options.add_generation_prompt = request.value("add_generation_prompt", false);
  options.now_unix_s = request.value("now", std::int64_t{0});
  if (request.contains("tools")) options.tools_json = json_text_of(request.at("tools"));
  if (request.contains("variables")) options.variables_json = json_text_of(request.at("variables"));
  TROUPE_TRY_ASSIGN(rendered, chat->render_json(json_text_of(request.at("messages")), options));
  return ordered_json(rendered);
}

Result<ordered_json> bytes(const ordered_json& request) {
  TROUPE_TRY_ASSIGN(tokenizer, tokenizer_of(request));
  ordered_json all = ordered_json::array();
  for (const text::TokenId id : request.at("ids").get<std::vector<text::TokenId>>()) {
    ordered_json own;
    if (const auto bytes = tokenizer.bytes_of(id)) {
      own = ordered_json::array();
      for (const char c : *bytes)
        own.push_back(static_cast<unsigned char>(c));
    }
    all.push_back(std::move(own));
  }
  return all;
}

Result<ordered_json> answer(const ordered_json& request) {
  const auto op = request.at("op").get<std::string>();
  if (op == "encode") return encode(request);
  if (op == "decode") return decode(request);
  if (op == "stream") return stream(request);
  if (op == "tokens") return tokens(request);
  if (op == "render") return render(request);
  if (op == "bytes") return bytes(request);
  return troupe::core::fail(troupe::core::ErrorCode::kInvalidArgument, "unknown op " + op);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = answer(ordered_json::parse(line));
    const ordered_json reply =
        result ? ordered_json{{"ok", *result}}
               : ordered_json{{"error", result.error().message},
                              {"code", troupe::core::error_name(result.error().code)}};
    std::cout << reply.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
  }
  return 0;
}
