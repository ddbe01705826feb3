// What a reward may be called. Its name stands in metrics next to our own figures (`reward/NAME`),
// in formulas next to our own words, in names of roles and of files; it never takes the place of
// what is ours there. Pure functions; any thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace troupe::config {

// The figures of a run under `reward/`, those that --log.names renames, and `extra`, under which
// the values stand that rewards report.
inline constexpr std::array<std::string_view, 12> kRewardFigures = {"mean",
                                                                    "std",
                                                                    "min",
                                                                    "max",
                                                                    "group_std",
                                                                    "group_min",
                                                                    "group_max",
                                                                    "missing",
                                                                    "filtered_groups",
                                                                    "length_pearson",
                                                                    "length_spearman",
                                                                    "extra"};

// The metric reward/FIGURE of one of kRewardFigures; nothing else is written under that name.
std::string reward_figure(std::string_view figure);

// Why no reward may have this name; "" if one may. `rest` is a word of formulas.
std::string own_word_fault(std::string_view name);

// Why no reward may be attached under this name, which also names a role and a file; "" if one may.
std::string attached_name_fault(std::string_view name);

// The name that a reward gets from its file (without its extension) or its model's folder.
std::string name_of_file(const std::string& path);
std::string name_of_folder(const std::string& path);

}  // namespace troupe::config
