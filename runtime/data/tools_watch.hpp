// Notices that rows have tools of which the chat template shows nothing: the model would learn to
// call what it never sees. One thread.
#pragma once

#include "runtime/data/chat_rows.hpp"

#include <span>
#include <string>

namespace troupe::data {

class ToolsWatch {
 public:
  // Null: nothing goes through a template.
  explicit ToolsWatch(const text::ChatTemplate* chat) : chat_(chat) {}

  // Looks at the first row that has tools, up to the assistant's first turn: later ones call the
  // tools by their names.
  void see(std::span<const text::ChatMessage> messages,
           const text::ChatInputs& inputs,
           const std::string& where);
  // The same for a row whose messages stand in any of its columns.
  void see(const Json& row, const std::string& where);

  // What to tell; empty: nothing.
  const std::string& warning() const { return warning_; }

 private:
  const text::ChatTemplate* chat_;
  bool looked_ = false;
  std::string warning_;
};

}  // namespace troupe::data
