#include "apps/troupe/stream_printer.hpp"

#include "runtime/observe/terminal_text.hpp"

#include <cstdio>

namespace troupe::app {

void StreamPrinter::print(const std::string& piece) {
  if (piece.empty()) return;
  text_ += piece;
  const std::string shown = to_terminal_ ? observe::terminal_safe(piece) : piece;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

core::Result<void> StreamPrinter::show(std::span<const std::int32_t> tokens) {
  for (; shown_ < tokens.size(); ++shown_) {
    TROUPE_TRY_ASSIGN(piece, decoder_.push(tokens[shown_]));
    print(piece);
  }
  return {};
}

core::Result<void> StreamPrinter::end() {
  TROUPE_TRY_ASSIGN(piece, decoder_.finish());
  print(piece);
  std::fputc('\n', stdout);
  std::fflush(stdout);
  return {};
}

}  // namespace troupe::app
