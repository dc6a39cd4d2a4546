/*
 * The plots, tables and elements of reports (podscaler.simulation.report, loaded as scripts before), as a module.
 */

/* global DecisionPanel, SharedZoom, TimePlotView, draw, element, isDark, switchTheme, tableElement, zoomButtons */

const parts = {
  DecisionPanel,
  SharedZoom,
  TimePlotView,
  drawReport: draw,
  element,
  isDark,
  switchTheme,
  tableElement,
  zoomButtons,
};

export default parts;
