// The words of configurations and test drivers for the choices of the learning side. Constants.
#pragma once

#include "runtime/learn/settings.hpp"

#include <map>
#include <string>

namespace troupe::learn {

template <class Kind>
using Names = std::map<std::string, Kind>;

inline const Names<AdvantageKind> kAdvantageNames = {
    {"group_norm", AdvantageKind::kGrpo},
    {"grpo", AdvantageKind::kGrpo},
    {"dr_grpo", AdvantageKind::kDrGrpo},
    {"rloo", AdvantageKind::kRloo},
    {"reinforce_baseline", AdvantageKind::kReinforceBaseline},
    {"reinforce", AdvantageKind::kReinforce},
    {"gae", AdvantageKind::kGae},
    {"vtrace", AdvantageKind::kVtrace}};
inline const Names<ObjectiveKind> kObjectiveNames = {{"ppo", ObjectiveKind::kPpo},
                                                     {"decoupled", ObjectiveKind::kDecoupled},
                                                     {"a3po", ObjectiveKind::kA3po},
                                                     {"bypass", ObjectiveKind::kBypass},
                                                     {"gspo", ObjectiveKind::kGspo},
                                                     {"cispo", ObjectiveKind::kCispo},
                                                     {"reinforce", ObjectiveKind::kReinforce},
                                                     {"topr", ObjectiveKind::kTopr},
                                                     {"online_dpo", ObjectiveKind::kOnlineDpo}};
inline const Names<CorrectionKind> kCorrectionNames = {
    {"none", CorrectionKind::kNone},      {"tis", CorrectionKind::kTis},
    {"seq_tis", CorrectionKind::kSeqTis}, {"mis", CorrectionKind::kMis},
    {"icepop", CorrectionKind::kIcepop},  {"geo_rs", CorrectionKind::kGeoRs},
    {"m2po", CorrectionKind::kM2po},      {"opsm", CorrectionKind::kOpsm}};
inline const Names<Reducer> kReducerNames = {{"token_mean", Reducer::kTokenMean},
                                             {"sample_mean", Reducer::kSampleMean},
                                             {"constant", Reducer::kConstant}};
inline const Names<KlEstimator> kKlNames = {
    {"k1", KlEstimator::kK1}, {"k2", KlEstimator::kK2}, {"k3", KlEstimator::kK3}};
inline const Names<ClipOrder> kClipOrderNames = {{"troupe", ClipOrder::kBeforeGroupStep},
                                                 {"openrlhf", ClipOrder::kAfterGroupStep}};

}  // namespace troupe::learn
