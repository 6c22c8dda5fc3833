// Random limits and calls for the engine.
#ifndef EBBGATE_TESTS_PROPERTY_ENGINE_HISTORIES_H_
#define EBBGATE_TESTS_PROPERTY_ENGINE_HISTORIES_H_

#include <string>
#include <vector>

#include "server/limiter/parameters.h"
#include "tests/property/engine_model.h"
#include "tests/property/random.h"

namespace ebbgate::testing {

// A limit of any algorithm, with overrides, shadow, default and maximum cost now and then.
Limit RandomLimit(Random& random, const std::string& name);

// Some of "limit-0" to "limit-4"; "limit-0" always.
std::vector<Limit> RandomLimits(Random& random);

// `before` with a few things changed: a limit's parameters, its overrides, one gone, one more.
std::vector<Limit> ChangedLimits(Random& random, const std::vector<Limit>& before);

// Mostly sound; one charge or several, on few keys so that they meet.
OwnCall RandomCall(Random& random, const std::vector<Limit>& limits);

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_ENGINE_HISTORIES_H_
