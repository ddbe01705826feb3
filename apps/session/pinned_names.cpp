#include "apps/session/pinned_names.hpp"

#include "apps/session/kept_keys.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/names/locate.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe::session {
namespace {

using names::Kind;

struct NamingKey {
  const char* key;
  Kind kind;
};

constexpr NamingKey kNaming[] = {{"actor.model_name_or_path", Kind::kModel},
                                 {"critic.model_name_or_path", Kind::kModel},
                                 {"ref.model_name_or_path", Kind::kModel},
                                 {"teacher.model_name_or_path", Kind::kModel},
                                 {"reward.model_name_or_path", Kind::kModel},
                                 {"reward.process.model_name_or_path", Kind::kModel},
                                 {"data.dataset", Kind::kDataset},
                                 {"data.prompt_dataset", Kind::kDataset},
                                 {"data.pretrain_dataset", Kind::kDataset},
                                 {"eval.dataset", Kind::kDataset}};

// The names of a key. Those of data sets stand in one text, with commas between them.
std::vector<std::string> names_in(const config::Row& row,
                                  const config::TrainConfig& config,
                                  Kind kind) {
  if (row.is<config::Texts>()) return row.get<config::Texts>(config);
  const std::string& text = row.get<config::Text>(config);
  if (kind == Kind::kDataset) return data::split_files(text);
  return text.empty() ? std::vector<std::string>() : std::vector{text};
}

// The name as the run has it, when it is `text` with a commit.
std::string of_run(const std::string& text, Kind kind, const std::vector<std::string>& run) {
  const auto name = names::hub_name(text, kind);
  if (!name || !name->revision.empty()) return text;
  for (const std::string& one : run) {
    const auto before = names::hub_name(one, kind);
    if (before && before->pinned() && before->at("").text() == text) return one;
  }
  return text;
}

}  // namespace

core::Result<void> pin_names(config::Builder& builder) {
  const auto run = run_before(builder.current());
  core::ErrorList wrong;
  for (const auto& [key, kind] : kNaming) {
    const config::Row& row = *config::keys().find(key);
    if (!row.is_read_by(builder.current().method)) continue;
    const auto given = names_in(row, builder.current(), kind);
    const auto before = run ? names_in(row, *run, kind) : std::vector<std::string>();
    std::vector<std::string> pinned;
    for (const std::string& text : given) {
      auto one = names::pinned(of_run(text, kind, before), kind);
      if (!one) wrong.add(one.error().within(key));
      pinned.push_back(one ? *one : text);
    }
    if (pinned == given) continue;
    for (const std::string& text : pinned) {
      if (std::ranges::find(given, text) == given.end())
        builder.note(std::string(key) + ": " + text);
    }
    const bool list = row.is<config::Texts>();
    std::vector<std::string> values = list ? pinned : std::vector{core::joined(pinned, ",")};
    TROUPE_TRY(builder.set({key, std::move(values), list, "the hub's commit"}));
  }
  return wrong.result();
}

}  // namespace troupe::session
