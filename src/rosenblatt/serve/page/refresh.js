// Ask again, but not too often.

/**
 * Return a function that has `work` done: never twice at once, and never sooner than `pause` milliseconds after the last time,
 * unless it is called with true.
 */
export function paced(pause, work) {
  let timer = null;
  let busy = false;
  let wanted = null; // while busy: whether to begin again, true at once, false after the pause
  let ended = -Infinity;
  function plan(soon = false) {
    if (busy) {
      wanted = soon || wanted === true;
      return;
    }
    clearTimeout(timer);
    timer = setTimeout(run, soon ? 0 : Math.max(0, ended + pause - performance.now()));
  }
  async function run() {
    busy = true;
    try {
      await work();
    } finally {
      busy = false;
      ended = performance.now();
      const again = wanted;
      wanted = null;
      if (again !== null) plan(again);
    }
  }
  return plan;
}

/** Return a function that has `work` done when it was not called again for `pause` milliseconds. */
export function settled(pause, work) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, pause);
  };
}
