(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  // Dark and light: as the system has it, until somebody chooses. A file may not be allowed to remember.
  function remembered(value) {
    try {
      if (value === undefined) return localStorage.getItem("mtpdoctor-theme");
      localStorage.setItem("mtpdoctor-theme", value);
    } catch (refused) { /* the choice holds for this visit */ }
    return null;
  }
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  var before = remembered();
  if (before === "dark" || before === "light") root.dataset.theme = before;

  // Copying: the clipboard is refused to pages of some browsers that were opened as a file.
  function byHand(text) {
    var area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("readonly", "");
    area.className = "quietly";
    document.body.appendChild(area);
    area.select();
    var done = false;
    try { done = document.execCommand("copy"); } catch (refused) { done = false; }
    area.remove();
    return done;
  }
  function copy(button) {
    var text = button.parentElement.querySelector("code").textContent;
    function say(done) {
      button.textContent = done ? "Copied" : "Select and copy by hand";
      if (!done) getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      setTimeout(function () { button.textContent = "Copy"; }, 2000);
    }
    function other() { var done = byHand(text); button.focus(); say(done); }
    if (navigator.clipboard && navigator.clipboard.writeText) {
      navigator.clipboard.writeText(text).then(function () { say(true); }, other);
    } else {
      other();
    }
  }

  document.addEventListener("click", function (event) {
    var target = event.target;
    var button = target.closest("button");
    if (button && button.classList.contains("copy")) copy(button);
    if (button && button.hasAttribute("data-theme-switch")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      remembered(root.dataset.theme);
    }
    if (button && button.hasAttribute("data-open-all")) {
      var folds = document.querySelectorAll("details");
      var open = !Array.prototype.every.call(folds, function (d) { return d.open; });
      folds.forEach(function (d) { d.open = open; });
    }
    var jump = target.closest("a[href^='#']");
    if (jump) show(jump.getAttribute("href").slice(1));
  });
  function show(id) {
    var fold = id && document.getElementById(id);
    if (fold && fold.tagName === "DETAILS") fold.open = true;
  }
  show(location.hash.slice(1));

  // A print shows everything.
  var closed = [];
  addEventListener("beforeprint", function () {
    closed = Array.prototype.filter.call(document.querySelectorAll("details"), function (d) { return !d.open; });
    closed.forEach(function (d) { d.open = true; });
  });
  addEventListener("afterprint", function () { closed.forEach(function (d) { d.open = false; }); });

  // Filtering groups: every word must stand in the group's row or in one of its launches.
  var search = document.getElementById("search");
  if (!search) return;
  var status = document.getElementById("status");
  var shown = document.getElementById("shown");
  var groups = Array.prototype.map.call(document.querySelectorAll("details.group"), function (fold) {
    return {
      fold: fold,
      row: document.getElementById("row-" + fold.id),
      status: fold.dataset.status || "",
      text: fold.dataset.words.toLowerCase(),
      members: Array.prototype.map.call(fold.querySelectorAll("tr[data-words]"), function (row) {
        return { row: row, text: row.dataset.words.toLowerCase() };
      })
    };
  });
  function holds(text, words) { return words.every(function (word) { return text.indexOf(word) >= 0; }); }
  function filter() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    var wanted = status ? status.value : "";
    var count = 0;
    groups.forEach(function (group) {
      var whole = holds(group.text, words);
      var any = false;
      group.members.forEach(function (member) {
        var fits = whole || holds(group.text + " " + member.text, words);
        member.row.hidden = !fits;
        any = any || fits;
      });
      var fits = (whole || any) && (!wanted || group.status === wanted);
      group.fold.hidden = !fits;
      group.row.hidden = !fits;
      if (fits) count += 1;
    });
    shown.textContent = count + " of " + groups.length + " groups";
  }
  search.addEventListener("input", filter);
  if (status) status.addEventListener("change", filter);
  document.addEventListener("keydown", function (event) {
    var typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && document.activeElement === search) { search.value = ""; filter(); }
  });
  filter();
})();
