// Reads rows of a supervised dataset one after the other and says which are used: encodes each,
// checks its length and its tokens, and notes for users how rows were read. One owner, one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/dialogue_coder.hpp"
#include "runtime/data/supervised_rows.hpp"
#include "runtime/data/tools_watch.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::data {

class SupervisedCoder {
 public:
  // All must outlive this object. Null `chat`: the model has no template.
  SupervisedCoder(const SupervisedColumns& columns,
                  const SupervisedLimits& limits,
                  const text::Tokenizer& tokenizer,
                  const text::ChatTemplate* chat)
      : columns_(columns),
        limits_(limits),
        coder_(tokenizer, chat, columns.add_special_tokens),
        tools_(columns.kind == RowKind::kText ? nullptr : chat) {}

  // The row, encoded; nothing if it is too long and such rows are left out. Errors (kData) do not
  // name the row.
  core::Result<std::optional<CodedRow>> take(const Json& row, const std::string& where);

  std::uint64_t dropped() const { return dropped_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool has_chats() const { return has_chats_; }
  // That the chat template shows nothing of the rows' tools, one of the notes; empty: it does.
  const std::string& tools_warning() const { return tools_.warning(); }
  // Why a dataset has no rows at all, if none of it was used.
  core::Failure none_left(const std::string& files) const;

 private:
  std::int64_t longest() const;
  void note(const CodedRow& coded, const std::string& where);
  void see_tools(const Json& row, const std::string& where);
  core::Result<bool> fits(const CodedRow& coded);

  const SupervisedColumns& columns_;
  const SupervisedLimits& limits_;
  const DialogueCoder coder_;
  ToolsWatch tools_;
  std::uint64_t dropped_ = 0;
  bool has_chats_ = false;
  std::vector<std::string> notes_;
  std::set<RowFormat> formats_;
  std::set<std::string> found_;  // what was said of columns that no setting names
};

// The number at the end of a row's place: of "train.jsonl:12" or "data.json item 12".
std::uint64_t number_in(const std::string& where);

}  // namespace troupe::data
