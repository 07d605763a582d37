// Pages that explain come before those that mention: without this, pages of equal score are in the order of the alphabet.
const PAGES = [
  [/^howto\/questions$/, 6],
  [/^learners\/perceptron$/, 5],
  [/^reference\/api\/rosenblatt\/Perceptron$/, 4],
  [/^(start|howto\/(command_line|tables|saving|online)|guides\/|learners\/|theory\/bound$)/, 3],
  [/^(howto|text|theory|reference\/commands)\//, 2],
  [/^notes\//, -1],
  [/^(design\/|benchmarks$)/, -3],
];

var Scorer = {
  score: ([page, , , , score]) => score + (PAGES.find(([name]) => name.test(page)) ?? [null, 0])[1],
  objNameMatch: 11, // the rest as Sphinx has it
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
