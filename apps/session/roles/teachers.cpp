#include "apps/session/roles/teachers.hpp"

#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/model/params.hpp"
#include "runtime/net/url.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>

namespace troupe::session {
namespace {

constexpr const char* kFolders = "teacher.model_name_or_path";

// Refuses a teacher whose ids stand for other tokens. A folder without a tokenizer is taken as it
// is.
Result<void> check_tokens(const std::filesystem::path& own, const std::filesystem::path& teacher) {
  std::error_code error;
  if (!std::filesystem::exists(teacher / "tokenizer.json", error)) return {};
  if (!std::filesystem::exists(own / "tokenizer.json", error)) return {};
  TROUPE_TRY_ASSIGN(ours, text::Tokenizer::load(own));
  TROUPE_TRY_ASSIGN(theirs, text::Tokenizer::load(teacher));
  const std::size_t ids = std::max(ours.id_limit(), theirs.id_limit());
  for (std::size_t i = 0; i < ids; ++i) {
    const auto id = static_cast<text::TokenId>(i);
    const auto a = ours.id_to_token(id), b = theirs.id_to_token(id);
    if (a == b) continue;
    const auto quoted = [](const std::optional<std::string>& token) {
      return token ? "'" + *token + "'" : std::string("none");
    };
    return core::fail(ErrorCode::kConfig,
                      std::string(kFolders) + ": token " + std::to_string(i) + " is " + quoted(b) +
                          " in " + teacher.string() + " and " + quoted(a) + " in the trained model",
                      "a teacher has the same tokenizer");
  }
  return {};
}

}  // namespace

std::string TeacherPart::name() const {
  return domain.empty() ? "the teacher" : "the teacher of " + domain;
}

std::vector<TeacherPart> teacher_parts(const config::TrainConfig& config) {
  std::vector<TeacherPart> parts;
  const auto add = [&](const std::string& folder, const std::string& url) {
    const std::size_t place = parts.size();
    const auto& domains = config.teacher.domains;
    parts.push_back({"teacher/" + std::to_string(place), folder, url,
                     place < domains.size() ? domains[place] : ""});
  };
  for (const std::string& folder : config.teacher.model_name_or_path)
    add(folder, "");
  for (const std::string& url : config.teacher.http)
    add("", url);
  return parts;
}

data::Domains domains_of(const config::TrainConfig& config) {
  return {config.teacher.domain_key, config.teacher.domains};
}

Result<void> check_teachers(const config::TrainConfig& config) {
  if (!has_teacher(config)) return {};
  TROUPE_TRY_ASSIGN(own, trained_folder(config));
  for (const TeacherPart& part : teacher_parts(config)) {
    if (!part.url.empty()) {
      auto parsed = net::parse_url(part.url);
      if (!parsed) return core::fail(parsed.error().within("teacher.http"));
      continue;
    }
    TROUPE_TRY(check_frozen_folder(config, part.folder, kFolders));
    TROUPE_TRY_ASSIGN(folder, model::resolve_model(part.folder));
    TROUPE_TRY(check_tokens(own, folder));
  }
  return {};
}

Result<std::int64_t> taught_context(const config::TrainConfig& config, std::int64_t own) {
  for (const std::string& from : config.teacher.model_name_or_path) {
    TROUPE_TRY_ASSIGN(folder, model::resolve_model(from));
    TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
    own = std::min(own, spec.context);
  }
  return own;
}

Result<actors::reference::TokenSpelling> token_spelling(const config::TrainConfig& config) {
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  std::error_code error;
  if (!std::filesystem::exists(folder / "tokenizer.json", error))
    return actors::reference::TokenSpelling();
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  return actors::reference::TokenSpelling([tokenizer](std::int32_t token) -> std::string {
    const text::TokenId id = token;
    if (tokenizer.is_special(id)) return "";
    const auto text = tokenizer.decode({&id, 1});
    const auto plain = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
    if (!text || !std::all_of(text->begin(), text->end(), plain)) return "";
    return *text;
  });
}

Result<std::shared_ptr<const model::PackedWeights>> teacher_weights(
    const config::TrainConfig& config, const std::string& folder, core::TeamRunner& team) {
  return frozen_weights(config, folder, kFolders, team);
}

}  // namespace troupe::session
