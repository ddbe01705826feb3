// What tests/house/budgets.py compiles between the rooms: the machine's speed in a source that
// nobody changes. Standard headers alone.
#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <ranges>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

template <int N>
struct Step {
  std::map<std::string, std::variant<int, double, std::string>> values;
  std::unordered_map<int, std::function<int(int)>> functions;
  int take(const std::string& text) {
    const std::regex expression("([a-z]+)=([0-9]+)");
    std::smatch found;
    if (std::regex_search(text, found, expression)) values[found[1]] = std::stoi(found[2]);
    functions[N] = [this](int by) { return static_cast<int>(values.size()) * by + N; };
    std::vector<int> sorted(64, N);
    std::ranges::sort(sorted, std::greater<>());
    auto later = std::async(std::launch::deferred, functions[N], sorted.front());
    return later.get() + Step<N - 1>().take(text);
  }
};

template <>
struct Step<0> {
  int take(const std::string& text) { return static_cast<int>(text.size()); }
};

}  // namespace

int fixed_source(const std::string& text) {
  std::cout << text;
  return Step<12>().take(text);
}
