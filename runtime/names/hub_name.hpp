// Names of models and data sets as a hub has them: OWNER/NAME[@REVISION], and for data sets
// OWNER/NAME[@REVISION][:CONFIG][:SPLIT]. Value types.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::names {

enum class Kind { kModel, kDataset };

struct HubName {
  Kind kind = Kind::kModel;
  std::string repository;     // OWNER/NAME
  std::string revision;       // a branch, tag or commit; empty: main
  std::string first, second;  // of a data set: a configuration and a split, or one of them

  // As it is written.
  std::string text() const;
  // With another revision.
  HubName at(std::string other) const;
  // Whether the revision is a commit: 40 hexadecimal digits.
  bool pinned() const;
};

// The name in `text`; nothing when it is not of that form, or can only be a path: it begins with
// '/',
// '.' or '~', or ends as files of rows do. Looks at no file.
std::optional<HubName> hub_name(std::string_view text, Kind kind);

// Whether the text is a commit's hash: 40 hexadecimal digits.
bool is_commit(std::string_view text);

}  // namespace troupe::names
