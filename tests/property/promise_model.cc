#include "tests/property/promise_model.h"

#include <algorithm>

namespace ebbgate::testing {
namespace {

bool Before(const PromisedCharge& a, const PromisedCharge& b) { return a.at_ns < b.at_ns; }

mpq_class Fraction(const mpz_class& numerator, const mpz_class& denominator) {
  mpq_class fraction(numerator, denominator);
  fraction.canonicalize();
  return fraction;
}

}  // namespace

PromiseModel::PromiseModel(const Limit& limit, std::int64_t now_ns)
    : start_ns_(now_ns), first_(limit.parameters), limit_(limit) {}

// The bucket as it is when everything up to `charges` has been charged, changes of limits at their times.
Reference PromiseModel::Replay(const std::vector<PromisedCharge>& charges, std::int64_t until_ns) const {
  Reference bucket(first_, start_ns_);
  std::size_t changed = 0;
  const auto change_until = [&](std::int64_t at_ns) {
    for (; changed < changes_.size() && changes_[changed].first <= at_ns; ++changed) {
      bucket.Change(changes_[changed].second, changes_[changed].first);
    }
  };
  for (const PromisedCharge& charge : charges) {
    if (charge.at_ns > until_ns) break;
    // An act due when the limits change comes first; other charges never come at that time.
    change_until(charge.at_ns - 1);
    if (charge.cost > 0) bucket.Admit(charge.at_ns, charge.cost);
  }
  change_until(until_ns);
  return bucket;
}

mpz_class PromiseModel::Available(std::int64_t at_ns) const { return Replay(charges_, at_ns).Available(at_ns); }

bool PromiseModel::MayHappen(std::int64_t at_ns, Microtokens cost) const {
  if (cost == 0) return true;
  if (Available(at_ns) < Needed(cost)) return false;
  std::vector<PromisedCharge> with = charges_;
  const PromisedCharge one{.at_ns = at_ns, .cost = cost};
  with.insert(std::upper_bound(with.begin(), with.end(), one, Before), one);
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    const PromisedCharge& act = charges_[i];
    if (act.at_ns <= at_ns || act.cost == 0) continue;
    // What this act finds, those at the same time before it having taken theirs.
    const std::vector<PromisedCharge> before(charges_.begin(), charges_.begin() + static_cast<std::ptrdiff_t>(i));
    const std::vector<PromisedCharge> before_with(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    const mpz_class finds = Replay(before_with, act.at_ns).Available(act.at_ns);
    if (finds < Needed(act.cost) && finds < Replay(before, act.at_ns).Available(act.at_ns)) return false;
  }
  return true;
}

std::int64_t PromiseModel::Remaining(std::int64_t now_ns) const {
  std::int64_t fits = 0;
  std::int64_t too_many = limit_.parameters.capacity / kMicrotokensPerToken + 1;
  while (too_many - fits > 1) {
    const std::int64_t middle = fits + (too_many - fits) / 2;
    (MayHappen(now_ns, FromTokens(middle)) ? fits : too_many) = middle;
  }
  return fits;
}

std::vector<std::int64_t> PromiseModel::Candidates(std::int64_t now_ns, Microtokens cost) const {
  std::vector<std::int64_t> starts = {now_ns};
  for (const PromisedCharge& charge : charges_) {
    if (charge.at_ns > now_ns && charge.at_ns != starts.back()) starts.push_back(charge.at_ns);
  }
  std::vector<std::int64_t> candidates;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t start_ns = starts[i];
    const bool last = i + 1 == starts.size();
    // Nothing is charged in the gap, so that what is there only grows.
    const Reference bucket = Replay(charges_, start_ns);
    std::int64_t no = start_ns - 1;
    std::int64_t yes = last ? start_ns + (std::int64_t{1} << 60) : starts[i + 1];
    if (bucket.Available(last ? yes : yes - 1) < Needed(cost)) continue;
    while (yes - no > 1) {
      const std::int64_t middle = no + (yes - no) / 2;
      (middle >= start_ns && bucket.Available(middle) >= Needed(cost) ? yes : no) = middle;
    }
    candidates.push_back(yes);
  }
  return candidates;
}

mpz_class PromiseModel::Owed(std::int64_t now_ns) const {
  mpz_class owed = -Available(now_ns);
  for (const PromisedCharge& charge : charges_) {
    if (charge.at_ns > now_ns) owed += charge.cost;
  }
  return owed;
}

// Without changes of limits.
PromiseModel::Books PromiseModel::BooksAt(std::int64_t now_ns) const {
  Books books;
  const Parameters& p = limit_.parameters;
  books.in = p.capacity;
  mpq_class level = p.capacity;
  std::int64_t last_ns = start_ns_;
  const auto refill = [&](std::int64_t until_ns) {
    const mpq_class came = Fraction((mpz_class(until_ns) - last_ns) * p.refill.tokens, p.refill.per_ns);
    books.in += came;
    level += came;
    if (level > p.capacity) {
      books.ran_over += level - p.capacity;
      level = p.capacity;
    }
    last_ns = until_ns;
  };
  for (const PromisedCharge& charge : charges_) {
    if (charge.at_ns > now_ns) break;
    refill(charge.at_ns);
    level -= charge.cost;
    (charge.open ? books.held : books.spent) += charge.cost;
  }
  refill(now_ns);
  return books;
}

void PromiseModel::Charge(const PromisedCharge& charge) {
  charges_.insert(std::upper_bound(charges_.begin(), charges_.end(), charge, Before), charge);
}

const PromisedCharge* PromiseModel::Find(std::uint64_t hold) const {
  const auto found =
      std::find_if(charges_.begin(), charges_.end(), [&](const PromisedCharge& charge) { return charge.hold == hold; });
  return found == charges_.end() ? nullptr : &*found;
}

void PromiseModel::End(std::uint64_t hold, Microtokens cost) {
  for (PromisedCharge& charge : charges_) {
    if (charge.hold != hold) continue;
    charge.open = false;
    charge.cost = cost;
  }
}

void PromiseModel::Expire(std::int64_t now_ns) {
  for (PromisedCharge& charge : charges_) {
    if (!charge.open || charge.expires_ns > now_ns) continue;
    charge.open = false;
    if (limit_.on_hold_expiry == OnHoldExpiry::kGiveBack) charge.cost = 0;
  }
}

void PromiseModel::Change(const Limit& limit, std::int64_t now_ns) {
  if (!(limit.parameters == limit_.parameters)) changes_.emplace_back(now_ns, limit.parameters);
  limit_ = limit;
}

}  // namespace ebbgate::testing
